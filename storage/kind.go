package storage

import (
	"fmt"
	"slices"
	"strings"
)

// A Kind is what an operation does. Its text is that of scenarios and results.
type Kind uint8

// The kinds of operations.
const (
	Read     Kind = iota // read a file, or parts of it
	Write                // create a file
	Stat                 // size and existence of a file
	List                 // names in a folder
	Mkdir                // create a folder
	Remove               // remove a file or an empty folder
	Checksum             // ask the service for a file's checksum
	Copy                 // have the service fetch a file from Op.Source
	Login                // connect and authenticate, nothing else
	Move                 // give a file or folder another name
	Locate               // which servers have a file
	Ping                 // ask whether the service is there, on the session as it is
	Run                  // run a program of the user on a file
	Kinds                // how many kinds there are
)

func kindNames() [Kinds]string {
	return [Kinds]string{"read", "write", "stat", "list", "mkdir", "remove", "checksum", "copy", "login", "move", "locate", "ping", "run"}
}

// String returns the text of the kind.
func (k Kind) String() string {
	if k >= Kinds {
		return fmt.Sprintf("kind(%d)", k)
	}
	return kindNames()[k]
}

// MarshalText implements encoding.TextMarshaler.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Kind) UnmarshalText(text []byte) error {
	names := kindNames()
	i := slices.Index(names[:], string(text))
	if i < 0 {
		return fmt.Errorf("unknown operation %q: use one of %s", text, strings.Join(names[:], ", "))
	}
	*k = Kind(i)
	return nil
}

// A Phase is a point that an operation passes on its way to its first byte.
type Phase uint8

// The phases, in the order in which an operation passes them.
const (
	Connected     Phase = iota // the transport connection is up
	Secured                    // TLS is agreed
	Authenticated              // the service has accepted the credentials
	Redirected                 // another server was named
	Opened                     // the file is open, or the answer's head is there
	FirstByte                  // the first payload byte has arrived
	Phases                     // how many phases there are
)

// A PhaseTracker has the bit 1<<Phase set for each phase that an operation has
// reported. Its zero value belongs to an operation that has just begun.
type PhaseTracker uint16

// Reached reports phase p to progress unless it was reported before. Once the
// file is open, earlier phases are not reported any more: they belong to later
// requests of the same operation.
func (t *PhaseTracker) Reached(progress Progress, p Phase) {
	const opened = 1<<Opened | 1<<FirstByte
	late := p < Opened && *t&opened != 0
	if !late && *t&(1<<p) == 0 {
		*t |= 1 << p
		progress.Reached(p)
	}
}
