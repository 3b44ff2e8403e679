package content

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
)

// pattern returns the bytes that all files share; nobody may write to them.
// It is the one package-level value here, because it is a constant in all but
// form: too large for the source, the same in every process, made when first
// asked for (about 1 ms) and never changed. To hand it around would put a
// parameter on Fill and everything above it, and a second copy into memory
// for each owner.
var pattern = sync.OnceValue(makePattern) //nolint:gochecknoglobals // a computed table, see above

func makePattern() []byte {
	p := make([]byte, PatternSize+8)
	for i := uint64(0); 8*i < PatternSize; i++ {
		binary.LittleEndian.PutUint64(p[8*i:], output(patternStart, i+1))
	}
	return p[:PatternSize:PatternSize]
}

// A Pattern is the shared pattern as a file in memory, from which the kernel
// can send (sendfile) without a copy through the process. One is enough for
// all connections of a process: give sendfile the offset explicitly, because
// the file's own position is shared.
type Pattern struct{ file *os.File }

// Open makes the memory file: a sealed memfd on Linux, elsewhere (or if that
// is refused) a temporary file without a name. The caller closes it.
func Open() (*Pattern, error) {
	f, err := memoryFile()
	if err != nil {
		if f, err = namelessFile(); err != nil {
			return nil, fmt.Errorf("content: memory file: %w", err)
		}
	}
	if _, err := f.WriteAt(pattern(), 0); err != nil {
		return nil, fmt.Errorf("content: fill memory file: %w", closeAfter(f, err))
	}
	if err := seal(f); err != nil {
		return nil, fmt.Errorf("content: seal memory file: %w", closeAfter(f, err))
	}
	return &Pattern{file: f}, nil
}

// File returns the memory file: PatternSize bytes, to be read only. It stays
// the Pattern's, which closes it.
func (p *Pattern) File() *os.File { return p.file }

// Close frees the memory file.
func (p *Pattern) Close() error { return p.file.Close() }

func namelessFile() (*os.File, error) {
	f, err := os.CreateTemp("", "weir-pattern-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, closeAfter(f, err)
	}
	return f, nil
}

// closeAfter closes f because of err, which is what the caller wants to know.
func closeAfter(f *os.File, err error) error {
	_ = f.Close()
	return err
}
