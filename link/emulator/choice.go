package emulator

import (
	"errors"
	"fmt"
	"strings"
)

// ErrImpossible is the error of links that cannot be emulated here by this user.
var ErrImpossible = errors.New("links cannot be emulated here")

// A Choice selects the place of the links.
type Choice struct {
	// Isolated reports that the links are possible only where this program is started once more by Isolate, in a
	// network of its own.
	Isolated bool
	// Why is the reason for isolation; "" without it.
	Why string
	// Limitations are differences from a real link, a sentence each.
	Limitations []string
}

// choose returns the kind of process in which links can be made. here and isolated are the reasons
// for which they cannot be made by this process and by an isolated process, "" if they can.
// isolated is nil if that was not tested.
func choose(here string, isolated *string) (Choice, error) {
	switch {
	case here == "":
		return Choice{}, nil
	case isolated == nil:
		return Choice{}, impossible(here)
	case *isolated != "":
		return Choice{}, impossible(here + "; nor in a network of this user's own: " + *isolated)
	}
	return Choice{Isolated: true, Why: "this process cannot make them beside other programs: " + here, Limitations: []string{
		"the service is outside of that network and is reached through a gate, where the link's TCP connections end"}}, nil
}

func impossible(why string) error {
	return fmt.Errorf("%w: %s: run as root, or allow users to make namespaces and open %s (docs/links.md)", ErrImpossible, why, tunPath)
}

// tunPath is the file by which TUN devices are made.
const tunPath = "/dev/net/tun"

// String describes the choice in sentences.
func (c Choice) String() string {
	text := "links are emulated in network namespaces, with a queue in user space"
	if c.Isolated {
		text += ", in a network of their own, since " + c.Why
	}
	if len(c.Limitations) > 0 {
		text += ". This does not show all: " + strings.Join(c.Limitations, "; ")
	}
	return text
}
