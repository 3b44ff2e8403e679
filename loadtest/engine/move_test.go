package engine

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
	"weir/loadtest/workload"
	"weir/storage"
)

// watched is a service that looks into the manifest before each move.
type watched struct {
	storage.Service
	m      *remembered
	suffix string // of folders
	moves  atomic.Int64
	lost   atomic.Int64
}

func (s *watched) Client() storage.Client { return &watchedClient{s.Service.Client(), s} }

type watchedClient struct {
	storage.Client
	s *watched
}

func (c *watchedClient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	if op.Kind == storage.Move {
		c.s.moves.Add(1)
		c.s.m.mu.Lock()
		if !c.s.m.left[op.Source+c.s.suffix] || !c.s.m.left[op.Path+c.s.suffix] {
			c.s.lost.Add(1)
		}
		c.s.m.mu.Unlock()
	}
	return c.Client.Do(ctx, op, p)
}

// Whenever a run that moves files or folders is killed, the manifest has all existing paths, under
// their current names; cleaning leaves nothing.
func TestWhatIsMovedIsFoundAgain(t *testing.T) {
	for kind, work := range map[string]workload.Work{
		"mix":      {Kind: "mix", Mix: map[string]float64{"write": 3, "move": 5, "remove": 1}, Size: workload.Dist{Fixed: 100}},
		"metadata": {Kind: "metadata", Mix: map[string]float64{"mkdir": 3, "move": 5, "remove": 1, "ping": 1}},
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				work.Session = "kept"
				conf, _ := closed(t, "simulated://x?servers=9&service=10ms&files=0x0&error.reset=5%25", work, stepOf(8, 20))
				m := conf.Manifest.(*remembered)
				s := &watched{Service: conf.Service, m: m}
				if kind == "metadata" {
					s.suffix = "/"
				}
				conf.Service = s
				if _, err := Prepare(t.Context(), conf, nil, nil); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second+3*time.Millisecond) // in the middle of operations
				defer cancel()
				if err := Run(ctx, conf); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				if s.moves.Load() < 1000 || s.lost.Load() > 0 {
					t.Errorf("%d moves, %d of them with a name that the manifest did not have", s.moves.Load(), s.lost.Load())
				}
				for _, path := range below(t, s, "") {
					if !m.left[path] {
						t.Errorf("%s is there, the manifest does not know it", path)
					}
				}
				clean(t, conf, m)
			})
		})
	}
}

// clean tries until nothing fails by chance, and checks that the target is empty.
func clean(t *testing.T, conf Config, m *remembered) {
	t.Helper()
	failed, err := 1, error(nil)
	for try := 0; failed > 0 && try < 50; try++ {
		var left []string
		for path := range m.left {
			left = append(left, path)
		}
		slices.Sort(left)
		failed, err = Clean(t.Context(), conf, left, nil)
	}
	if rest := below(t, conf.Service, ""); failed > 0 || len(rest) > 0 {
		t.Errorf("%d could not be removed (%v), left are %q", failed, err, rest)
	}
}

// below lists all files and folders below a folder, folders with a slash.
func below(t *testing.T, s storage.Service, folder string) []string {
	t.Helper()
	var all []string
	var res storage.Result
	err := errors.New("never asked")
	for try := 0; err != nil && try < 50; try++ { // some operations are made to fail
		res, err = s.Client().Do(t.Context(), &storage.Op{Kind: storage.List, Path: folder}, storage.NoProgress{})
	}
	require.NoError(t, err)
	for _, e := range res.Entries {
		path := strings.TrimPrefix(folder+"/"+e.Name, "/")
		if !e.Dir {
			all = append(all, path)
			continue
		}
		all = append(append(all, path+"/"), below(t, s, path)...)
	}
	return all
}

// denying is a service that denies each operation.
type denying struct{ storage.Service }

func (s denying) Client() storage.Client { return denyingClient{s.Service.Client()} }

type denyingClient struct{ storage.Client }

func (denyingClient) Do(_ context.Context, op *storage.Op, _ storage.Progress) (storage.Result, error) {
	return storage.Result{}, &storage.OpError{Kind: op.Kind, URL: op.Path, Err: fs.ErrPermission}
}

// Paths that the service refuses were not made: the manifest has the existing paths and nothing
// else.
func TestRefusedIsNotMade(t *testing.T) {
	for kind, work := range map[string]workload.Work{
		"write":    {Kind: "write", Size: workload.Dist{Fixed: 100}},
		"metadata": {Kind: "metadata", Mix: map[string]float64{"mkdir": 1}},
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				work.Session = "kept"
				conf, _ := closed(t, "simulated://x?service=10ms&files=0x0", work, stepOf(2, 2))
				m := conf.Manifest.(*remembered)
				if _, err := Prepare(t.Context(), conf, nil, nil); err != nil {
					t.Fatal(err)
				}
				there := conf.Service
				conf.Service = denying{there}
				if err := Run(t.Context(), conf); err != nil {
					t.Fatal(err)
				}
				made := below(t, there, "")
				if len(m.left) != len(made) || len(made) == 0 {
					t.Errorf("the manifest has %d names, the service %q", len(m.left), made)
				}
			})
		})
	}
}
