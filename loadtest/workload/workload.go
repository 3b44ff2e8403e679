// Package workload decides what a virtual client does next: an endless sequence
// of tasks that depends only on the plan's seed and the client's number.
//
// It creates storage.Ops and knows neither protocols nor clocks; package engine
// runs the tasks. A client writes to a folder of its own, under names that are
// used once in a run, and removes or moves only what its own earlier tasks wrote.
package workload

import (
	"io"
	"math/rand/v2"
	"path"
	"strconv"
	"time"

	"weir/internal/content"
	"weir/storage"
)

// A Task is what a client does between two pauses: its operations, one after
// the other, in one session. Its zero value is ready for Next.
type Task struct {
	Ops   []storage.Op  // reused from task to task, their Ranges too
	Think time.Duration // pause after the task
	// payload of this task is checked: that of a read on its way, its Op carries a Sum; that of a write by who runs the task,
	// afterwards
	Verify bool
	Job    *Reading // the task is a job of kind job: its requests come from here, and Ops[0] is room for one; nil for other kinds
	File   *File    // the file that the task reads, asks for or writes; nil if none. Not to be changed; valid until Next
	Failed bool     // set by who ran the task, before the next Next: a write, mkdir or move that failed will not be removed or moved later
}

// A Workload is one client's source of tasks. It belongs to the client's
// number for the whole run: a client that is stopped and started again goes
// on with the same Workload, otherwise it would write the same names again.
type Workload interface {
	// Next fills t with the next task, reusing its memory. It is a pure
	// function of r's state and of the tasks before. It expects the same t
	// as the time before, with Failed set if it was.
	Next(r *rand.Rand, t *Task)
}

// Expected returns the checksum "algorithm:hex" that a right answer to op
// about f has: of the whole file, or of op's ranges one after the other, as
// far as the file goes. ok is false if it is unknown: f was not made by
// the run, op is no Read or Checksum, or alg is unknown.
//
// It makes the content to sum it, so it costs what summing the payload costs.
func Expected(f File, op *storage.Op, alg string) (sum string, ok bool) {
	if !f.Made || f.Size < 0 || op.Kind != storage.Read && op.Kind != storage.Checksum {
		return "", false
	}
	ranges := op.Ranges
	if op.Kind == storage.Checksum || ranges == nil {
		ranges = []storage.Range{{Length: f.Size}}
	}
	h, err := content.NewHash(alg)
	if err != nil {
		return "", false
	}
	for _, r := range ranges {
		if r.Offset < 0 || r.Offset >= f.Size || r.Length <= 0 {
			continue
		}
		part := content.NewReader(f.Seed, r.Offset+min(r.Length, f.Size-r.Offset))
		if _, err := part.Seek(r.Offset, io.SeekStart); err != nil {
			return "", false
		}
		if _, err := part.WriteTo(h); err != nil {
			return "", false
		}
	}
	return content.Text(alg, h), true
}

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
	return outputs(w)
}

// WritesFiles reports whether clients that do w write files to the target.
func WritesFiles(w Work) bool { return choose(w).has(storage.Write) || outputs(w) }

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
