// Package workload generates the tasks of a virtual client: an endless sequence that depends only
// on the plan's seed and the client's number.
//
// It creates storage.Ops and is independent of protocols and clocks; package engine runs the tasks.
// A client writes to a folder of its own, under names that are used once in a run, and removes or
// moves only files and folders that its own earlier tasks wrote.
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

// A Task is the work of a client between two pauses: its operations, one after the other, in one
// session. Its zero value is ready for Next.
type Task struct {
	Ops   []storage.Op  // reused from task to task, with their Ranges
	Think time.Duration // pause after the task
	// Verify requests a check of the payload of this task: of a read during the transfer, with a
	// Sum in its Op, and of a write by the caller after the task.
	Verify bool
	// Job makes the requests of a job of kind job, for which Ops[0] is room for one request. It is
	// nil for other kinds.
	Job  *Reading
	File *File // read, requested or written file, or nil; read-only, valid until Next
	// Failed is set by the caller of Next before the next call: the result of a write, mkdir or
	// move that failed will not be removed or moved later.
	Failed bool
}

// A Workload is one client's source of tasks. It belongs to the client's number for the whole run:
// a client that is stopped and started again continues with the same Workload, otherwise it would
// write the same names again.
type Workload interface {
	// Next fills t with the next task, reusing its memory. It is a pure function of r's state and
	// of the tasks before. It expects the t of the previous call, with Failed set if that task
	// failed.
	Next(r *rand.Rand, t *Task)
}

// Expected returns the checksum "algorithm:hex" of a correct response to op on f: of the whole
// file, or of op's ranges one after the other, up to the end of the file. ok is false if it is
// unknown: f was not made by the run, op is no Read or Checksum, or alg is unknown.
//
// It generates the content to compute its checksum, which costs as much as a checksum of the
// payload.
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

// Writes reports whether clients that do w make files or folders, so that their Home must exist and
// be cleaned up after the run.
func Writes(w Work) bool {
	for _, k := range choose(w).kinds {
		switch k.String() {
		case "write", "copy", "mkdir", "remove", "move":
			return true
		}
	}
	return outputs(w)
}

// WritesFiles reports whether clients that do w write files to the target.
func WritesFiles(w Work) bool {
	c := choose(w)
	return c.has(storage.Write) || c.has(storage.Copy) || outputs(w)
}

// names numbers the files and folders that a client makes: no number is used twice, so no name is.
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
