package workload

import (
	"path"
	"strconv"
)

// Home returns the folder, below the target, in which the client with the
// given number writes. It must exist before the client's first task.
func Home(dir string, client int) string {
	return path.Join(dir, string(padded([]byte{'c'}, uint64(max(client, 0)), 4)))
}

// Writes says whether clients that do w make files or folders, so that their
// Home must exist and be cleaned up after the run.
func Writes(w Work) bool {
	for _, k := range choose(w).kinds {
		switch k.String() {
		case "write", "mkdir", "remove", "move":
			return true
		}
	}
	return false
}

// names counts what a client makes: no number is used twice, so no name is.
type names struct {
	home string
	used uint64
}

func (n *names) next() uint64 { n.used++; return n.used - 1 }

func (n *names) file(i uint64) string {
	return string(append(padded(n.start(), i, 6), ".dat"...))
}

func (n *names) folder(i uint64) string {
	return string(padded(append(n.start(), 'd'), i, 4))
}

func (n *names) start() []byte {
	b := make([]byte, 0, len(n.home)+1+20+4)
	return append(append(b, n.home...), '/')
}

// padded appends i with at least width digits.
func padded(b []byte, i uint64, width int) []byte {
	for ten := uint64(10); width > 1; width-- {
		if i < ten {
			for range width - 1 {
				b = append(b, '0')
			}
			break
		}
		ten *= 10
	}
	return strconv.AppendUint(b, i, 10)
}
