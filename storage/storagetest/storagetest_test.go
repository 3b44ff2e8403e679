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

	"weir/internal/require"
	"weir/internal/tier"
	"weir/storage"
	"weir/storage/simulated"
	"weir/storage/storagetest"
)

const variable = "WEIR_STORAGETEST_DEFECT"

// A defect changes the behavior of a correct client. part is the subtest that has to find it.
type defect struct {
	name string
	part string
	shut func() // called for each Close, if it is set
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
	tier.Slow(t, "starts processes")
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
	require.NoError(t, err)
	good := simulated.Driver()
	bad := good
	bad.Open = func(ctx context.Context, target storage.Target) (storage.Service, error) {
		s, err := good.Open(ctx, target)
		return service{s, d}, err
	}
	storagetest.Run(t, bad, storage.Target{URL: u}, storagetest.Options{Bound: 2 * time.Second, Clients: 4, Largest: 4 << 20, Shared: true})
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

func (c client) Close() error {
	if c.d.shut != nil {
		c.d.shut()
	}
	return c.Client.Close()
}

func (c client) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	return c.d.do(ctx, c.Client, op, p)
}

// after returns a defective Do that changes the result of an operation after its end.
func after(change func(op *storage.Op, p storage.Progress, res *storage.Result, err error) error) func(context.Context, storage.Client,
	*storage.Op, storage.Progress) (storage.Result, error) {
	return func(ctx context.Context, good storage.Client, op *storage.Op, p storage.Progress) (storage.Result, error) {
		res, err := good.Do(ctx, op, p)
		err = change(op, p, &res, err)
		return res, err
	}
}

func defects() []defect {
	return slices.Concat(quiet(), careless(),
		[]defect{{name: "none", do: after(func(_ *storage.Op, _ storage.Progress, _ *storage.Result, err error) error { return err })}})
}

// quiet returns the defects in reported progress.
func quiet() []defect {
	return []defect{
		{name: "wrong checksum", part: "read/1000", do: after(func(op *storage.Op, _ storage.Progress, res *storage.Result, err error) error {
			if op.Kind == storage.Read && res.Sum != "" {
				res.Sum = "adler32:00000000"
			}
			return err
		})},
		{name: "a byte too many", part: "read/1000", do: after(func(op *storage.Op, p storage.Progress, _ *storage.Result, err error) error {
			if op.Kind == storage.Read && err == nil && op.Size > 0 {
				p.Moved(1)
			}
			return err
		})},
		{name: "more discarded than moved", part: "read/1000",
			do: after(func(op *storage.Op, _ storage.Progress, res *storage.Result, err error) error {
				if op.Kind == storage.Read {
					res.Discarded += 1
				}
				return err
			})},
		{name: "less wire than payload", part: "read/1000",
			do: after(func(_ *storage.Op, _ storage.Progress, res *storage.Result, err error) error {
				res.Wire = 1
				return err
			})},
		{name: "wrong size of stat", part: "write/size_1000",
			do: after(func(op *storage.Op, _ storage.Progress, res *storage.Result, err error) error {
				if op.Kind == storage.Stat {
					res.Size++
				}
				return err
			})},
		{name: "forgetful list", part: "write/name_plain.dat",
			do: after(func(op *storage.Op, _ storage.Progress, res *storage.Result, err error) error {
				res.Entries = nil
				return err
			})},
		{name: "phase twice", part: "read/1000", do: after(func(_ *storage.Op, p storage.Progress, _ *storage.Result, err error) error {
			p.Reached(storage.FirstByte)
			p.Reached(storage.FirstByte)
			return err
		})},
		{name: "progress after the end", part: "leaks", do: after(func(_ *storage.Op, p storage.Progress, _ *storage.Result, err error) error {
			go func() { <-time.After(time.Millisecond); p.ServedBy("late") }()
			return err
		})},
		{name: "two at once", part: "read/1000", do: func(ctx context.Context, good storage.Client, op *storage.Op,
			p storage.Progress) (storage.Result, error) {
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
		{name: "told at the end", part: "read/on_the_way", do: func(ctx context.Context, good storage.Client, op *storage.Op,
			p storage.Progress) (storage.Result, error) {
			late := &collector{Progress: p}
			res, err := good.Do(ctx, op, late)
			if late.n > 0 {
				p.Moved(late.n)
			}
			return res, err
		}},
		{name: "changed op", part: "read/1000", do: after(func(op *storage.Op, _ storage.Progress, _ *storage.Result,
			err error) error {
			op.Chunk++
			return err
		})},
		{name: "bare errors", part: "missing", do: after(func(_ *storage.Op, _ storage.Progress, _ *storage.Result, err error) error {
			return errors.Unwrap(err)
		})},
		{name: "leaked goroutine", part: "leaks", do: after(func(op *storage.Op, _ storage.Progress, _ *storage.Result, err error) error {
			if op.Kind == storage.Login {
				go simulated.Theory{Servers: 1, Service: 1, Think: 1 << 40}.Rate(1 << 40)
			}
			return err
		})},
	}
}

// A collector stores the moved bytes.
type collector struct {
	storage.Progress
	n int
}

func (c *collector) Moved(n int) { c.n += n }

// careless returns the defects in performed actions.
func careless() []defect {
	var seen sync.Map
	return []defect{
		{name: "short is fine", part: "ranges/over_the_end",
			do: after(func(_ *storage.Op, _ storage.Progress, _ *storage.Result, err error) error {
				if errors.Is(err, storage.ErrShort) {
					return nil
				}
				return err
			})},
		{name: "missing is nothing", part: "missing/read_file",
			do: after(func(_ *storage.Op, _ storage.Progress, _ *storage.Result, err error) error {
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				return err
			})},
		{name: "copy does nothing", part: "unsupported", do: after(func(op *storage.Op, _ storage.Progress, _ *storage.Result, err error) error {
			if op.Kind == storage.Copy {
				return nil
			}
			return err
		})},
		{name: "deaf to contexts", part: "cancel/before", do: func(_ context.Context, good storage.Client, op *storage.Op,
			p storage.Progress) (storage.Result, error) {
			return good.Do(context.Background(), op, p)
		}},
		{name: "deaf to timeouts", part: "timeout/of_the_operation", do: func(ctx context.Context, good storage.Client, op *storage.Op,
			p storage.Progress) (storage.Result, error) {
			patient := *op
			patient.Timeout = 0
			return good.Do(ctx, &patient, p)
		}},
		{name: "hangs after cancel", part: "cancel/before", do: func(ctx context.Context, good storage.Client, op *storage.Op,
			p storage.Progress) (storage.Result, error) {
			if ctx.Err() != nil {
				select {}
			}
			return good.Do(ctx, op, p)
		}},
		{name: "ranges mixed up", part: "ranges/descending", do: func(ctx context.Context, good storage.Client, op *storage.Op,
			p storage.Progress) (storage.Result, error) {
			sorted := *op
			sorted.Ranges = slices.Clone(op.Ranges)
			slices.SortFunc(sorted.Ranges, func(a, b storage.Range) int { return int(a.Offset - b.Offset) })
			return good.Do(ctx, &sorted, p)
		}},
		{name: "connects each time", part: "session", do: func(ctx context.Context, good storage.Client, op *storage.Op,
			p storage.Progress) (storage.Result, error) {
			if err := good.Close(); err != nil {
				return storage.Result{}, err
			}
			return good.Do(ctx, op, p)
		}},
		{name: "first answer for all", part: "write", do: func(ctx context.Context, good storage.Client, op *storage.Op,
			p storage.Progress) (storage.Result, error) {
			res, err := good.Do(ctx, op, p)
			if op.Kind == storage.Stat && err == nil {
				first, _ := seen.LoadOrStore("stat", res)
				return first.(storage.Result), nil
			}
			return res, err
		}},
		{name: "move does nothing", part: "move/file", do: func(ctx context.Context, good storage.Client, op *storage.Op,
			p storage.Progress) (storage.Result, error) {
			if op.Kind == storage.Move {
				return storage.Result{}, nil
			}
			return good.Do(ctx, op, p)
		}},
		{name: "move overwrites", part: "move/onto_another", do: func(ctx context.Context, good storage.Client, op *storage.Op,
			p storage.Progress) (storage.Result, error) {
			if op.Kind == storage.Move {
				if res, err := good.Do(ctx, &storage.Op{Kind: storage.Remove, Path: op.Path}, p); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return res, err
				}
			}
			return good.Do(ctx, op, p)
		}},
		{name: "kept files are mixed up", part: "keep", do: func(ctx context.Context, good storage.Client, op *storage.Op,
			p storage.Progress) (storage.Result, error) {
			if !op.Keep {
				return good.Do(ctx, op, p)
			}
			first, _ := seen.LoadOrStore("kept", op.Path)
			mixed := *op
			mixed.Path = first.(string)
			return good.Do(ctx, &mixed, p)
		}},
		{name: "plain is empty", part: "plain", do: func(ctx context.Context, good storage.Client, op *storage.Op,
			p storage.Progress) (storage.Result, error) {
			if op.Plain && op.Kind == storage.Read {
				return storage.Result{Size: op.Size}, nil
			}
			return good.Do(ctx, op, p)
		}},
		{name: "answers mixed up", part: "joint/different_files",
			do: after(func(op *storage.Op, _ storage.Progress, res *storage.Result, err error) error {
				if op.Sum != "" && strings.Contains(op.Path, "-joint-f") {
					last, _ := seen.Swap("answer", res.Sum)
					if other, ok := last.(string); ok {
						res.Sum = other
					}
				}
				return err
			})},
		{name: "close breaks others", part: "joint/close_of_one", shut: func() { seen.Store("closed", true) },
			do: func(ctx context.Context, good storage.Client, op *storage.Op, p storage.Progress) (storage.Result, error) {
				if _, closed := seen.Load("closed"); closed && op.Kind == storage.Read {
					return storage.Result{}, &storage.OpError{Kind: op.Kind, URL: op.Path, Err: fs.ErrClosed}
				}
				return good.Do(ctx, op, p)
			}},
		{name: "old content stays", part: "replace", do: func(ctx context.Context, good storage.Client, op *storage.Op,
			p storage.Progress) (storage.Result, error) {
			_, err := good.Do(ctx, &storage.Op{Kind: storage.Stat, Path: op.Path}, p)
			if op.Kind == storage.Write && err == nil {
				return storage.Result{}, nil
			}
			return good.Do(ctx, op, p)
		}},
	}
}
