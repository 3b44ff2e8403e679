package storagetest_test

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/storage"
	"weir/storage/simulated"
	"weir/storage/storagetest"
)

const variable = "WEIR_STORAGETEST_DEFECT"

// A defect changes what a good client does. part is the subtest that has to
// find it.
type defect struct {
	name string
	part string
	do   func(ctx context.Context, good storage.Client, op *storage.Op, p storage.Progress) (storage.Result, error)
}

// TestSuiteFinds runs the suite on drivers that each have one defect, in a
// process of its own, and expects it to fail where it should.
func TestSuiteFinds(t *testing.T) {
	if name := os.Getenv(variable); name != "" {
		i := slices.IndexFunc(defects(), func(d defect) bool { return d.name == name })
		run(t, defects()[i])
		return
	}
	for _, d := range defects() {
		t.Run(d.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSuiteFinds$/"+only(d.part))
			cmd.Env = append(os.Environ(), variable+"="+d.name)
			out, err := cmd.CombinedOutput()
			switch {
			case d.part == "" && err != nil:
				t.Errorf("the suite fails on a good driver:\n%s", out)
			case d.part == "" && err == nil:
			case err == nil:
				t.Error("the suite passes")
			case !strings.Contains(string(out), "--- FAIL: TestSuiteFinds/"+d.part):
				t.Errorf("the suite does not fail in %s:\n%s", d.part, out)
			case strings.Contains(string(out), "panic:"):
				t.Errorf("the suite panics:\n%s", out)
			}
		})
	}
}

// only matches the part of the suite that a defect needs, to save time.
func only(part string) string {
	switch first, _, _ := strings.Cut(part, "/"); first {
	case "":
		return ".*"
	case "leaks":
		return "^(login|leaks)$"
	default:
		return "^" + first + "$"
	}
}

func run(t *testing.T, d defect) {
	u, err := url.Parse("simulated://x?service=20us&bandwidth=100Gbit/s&files=0x0")
	if err != nil {
		t.Fatal(err)
	}
	good := simulated.Driver()
	bad := good
	bad.Open = func(ctx context.Context, target storage.Target) (storage.Service, error) {
		s, err := good.Open(ctx, target)
		return service{s, d}, err
	}
	storagetest.Run(t, bad, storage.Target{URL: u}, storagetest.Options{Bound: 2 * time.Second, Clients: 4, Largest: 4 << 20})
}

type service struct {
	storage.Service
	d defect
}

func (s service) Client() storage.Client { return client{s.Service.Client(), s.d} }

type client struct {
	storage.Client
	d defect
}

func (c client) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	return c.d.do(ctx, c.Client, op, p)
}

// after makes a defect that shows when a good operation is over.
func after(change func(op *storage.Op, p storage.Progress, res *storage.Result, err error) error) func(context.Context, storage.Client, *storage.Op, storage.Progress) (storage.Result, error) {
	return func(ctx context.Context, good storage.Client, op *storage.Op, p storage.Progress) (storage.Result, error) {
		res, err := good.Do(ctx, op, p)
		err = change(op, p, &res, err)
		return res, err
	}
}

func defects() []defect {
	return slices.Concat(quiet(), careless(), []defect{{"none", "", after(func(_ *storage.Op, _ storage.Progress, _ *storage.Result, err error) error { return err })}})
}

// quiet are the defects in what is told.
func quiet() []defect {
	return []defect{
		{"wrong checksum", "read/1000", after(func(op *storage.Op, _ storage.Progress, res *storage.Result, err error) error {
			if op.Kind == storage.Read && res.Sum != "" {
				res.Sum = "adler32:00000000"
			}
			return err
		})},
		{"a byte too many", "read/1000", after(func(op *storage.Op, p storage.Progress, _ *storage.Result, err error) error {
			if op.Kind == storage.Read && err == nil && op.Size > 0 {
				p.Moved(1)
			}
			return err
		})},
		{"more discarded than moved", "read/1000", after(func(op *storage.Op, _ storage.Progress, res *storage.Result, err error) error {
			if op.Kind == storage.Read {
				res.Discarded += 1
			}
			return err
		})},
		{"less wire than payload", "read/1000", after(func(_ *storage.Op, _ storage.Progress, res *storage.Result, err error) error {
			res.Wire = 1
			return err
		})},
		{"wrong size of stat", "write/size_1000", after(func(op *storage.Op, _ storage.Progress, res *storage.Result, err error) error {
			if op.Kind == storage.Stat {
				res.Size++
			}
			return err
		})},
		{"forgetful list", "write/name_plain.dat", after(func(op *storage.Op, _ storage.Progress, res *storage.Result, err error) error {
			res.Entries = nil
			return err
		})},
		{"phase twice", "read/1000", after(func(_ *storage.Op, p storage.Progress, _ *storage.Result, err error) error {
			p.Reached(storage.FirstByte)
			p.Reached(storage.FirstByte)
			return err
		})},
		{"progress after the end", "leaks", after(func(_ *storage.Op, p storage.Progress, _ *storage.Result, err error) error {
			go func() { <-time.After(time.Millisecond); p.ServedBy("late") }()
			return err
		})},
		{"two at once", "read/1000", func(ctx context.Context, good storage.Client, op *storage.Op, p storage.Progress) (storage.Result, error) {
			var both sync.WaitGroup
			for range 4 {
				both.Go(func() {
					for range 20_000 {
						p.ServedBy("x")
					}
				})
			}
			both.Wait()
			return good.Do(ctx, op, p)
		}},
		{"told at the end", "read/on_the_way", func(ctx context.Context, good storage.Client, op *storage.Op, p storage.Progress) (storage.Result, error) {
			late := &collector{Progress: p}
			res, err := good.Do(ctx, op, late)
			if late.n > 0 {
				p.Moved(late.n)
			}
			return res, err
		}},
		{"changed op", "read/1000", after(func(op *storage.Op, _ storage.Progress, _ *storage.Result, err error) error { op.Chunk++; return err })},
		{"bare errors", "missing", after(func(_ *storage.Op, _ storage.Progress, _ *storage.Result, err error) error { return errors.Unwrap(err) })},
		{"leaked goroutine", "leaks", after(func(op *storage.Op, _ storage.Progress, _ *storage.Result, err error) error {
			if op.Kind == storage.Login {
				go simulated.Theory{Servers: 1, Service: 1, Think: 1 << 40}.Rate(1 << 40)
			}
			return err
		})},
	}
}

// A collector keeps what moved to itself.
type collector struct {
	storage.Progress
	n int
}

func (c *collector) Moved(n int) { c.n += n }

// careless are the defects in what is done.
func careless() []defect {
	var seen sync.Map
	return []defect{
		{"short is fine", "ranges/over_the_end", after(func(_ *storage.Op, _ storage.Progress, _ *storage.Result, err error) error {
			if errors.Is(err, storage.ErrShort) {
				return nil
			}
			return err
		})},
		{"missing is nothing", "missing/read_file", after(func(_ *storage.Op, _ storage.Progress, _ *storage.Result, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})},
		{"copy does nothing", "unsupported", after(func(op *storage.Op, _ storage.Progress, _ *storage.Result, err error) error {
			if op.Kind == storage.Copy {
				return nil
			}
			return err
		})},
		{"deaf to contexts", "cancel/before", func(_ context.Context, good storage.Client, op *storage.Op, p storage.Progress) (storage.Result, error) {
			return good.Do(context.Background(), op, p)
		}},
		{"deaf to timeouts", "timeout/of_the_operation", func(ctx context.Context, good storage.Client, op *storage.Op, p storage.Progress) (storage.Result, error) {
			patient := *op
			patient.Timeout = 0
			return good.Do(ctx, &patient, p)
		}},
		{"hangs after cancel", "cancel/before", func(ctx context.Context, good storage.Client, op *storage.Op, p storage.Progress) (storage.Result, error) {
			if ctx.Err() != nil {
				select {}
			}
			return good.Do(ctx, op, p)
		}},
		{"ranges mixed up", "ranges/descending", func(ctx context.Context, good storage.Client, op *storage.Op, p storage.Progress) (storage.Result, error) {
			sorted := *op
			sorted.Ranges = slices.Clone(op.Ranges)
			slices.SortFunc(sorted.Ranges, func(a, b storage.Range) int { return int(a.Offset - b.Offset) })
			return good.Do(ctx, &sorted, p)
		}},
		{"connects each time", "session", func(ctx context.Context, good storage.Client, op *storage.Op, p storage.Progress) (storage.Result, error) {
			if err := good.Close(); err != nil {
				return storage.Result{}, err
			}
			return good.Do(ctx, op, p)
		}},
		{"first answer for all", "write", func(ctx context.Context, good storage.Client, op *storage.Op, p storage.Progress) (storage.Result, error) {
			res, err := good.Do(ctx, op, p)
			if op.Kind == storage.Stat && err == nil {
				first, _ := seen.LoadOrStore("stat", res)
				return first.(storage.Result), nil
			}
			return res, err
		}},
		{"old content stays", "replace", func(ctx context.Context, good storage.Client, op *storage.Op, p storage.Progress) (storage.Result, error) {
			_, err := good.Do(ctx, &storage.Op{Kind: storage.Stat, Path: op.Path}, p)
			if op.Kind == storage.Write && err == nil {
				return storage.Result{}, nil
			}
			return good.Do(ctx, op, p)
		}},
	}
}
