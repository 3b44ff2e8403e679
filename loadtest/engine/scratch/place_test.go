package scratch

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"weir/internal/require"
	"weir/internal/unit"
	"weir/loadtest/workload"
	"weir/storage"
)

// staged is the work of staged jobs with copies below parent.
func staged(parent string, quota int64) []workload.Work {
	return []workload.Work{{Kind: workload.ReadWork}, {Kind: workload.JobWork, Job: &workload.Job{Access: workload.Staged, Scratch: parent,
		Quota: unit.Size(quota)}}}
}

func place(t *testing.T, parent string, quota int64) *Place {
	t.Helper()
	p, err := OpenPlace(staged(parent, quota), 2)
	require.NoError(t, err)
	return p
}

func TestDefaultFolder(t *testing.T) {
	for _, c := range []struct {
		want string
		env  map[string]string
	}{
		{"/pool/dir_7", map[string]string{"_CONDOR_SCRATCH_DIR": "/pool/dir_7", "TMPDIR": "/pool/dir_7/tmp"}},
		{"/local/9", map[string]string{"SLURM_TMPDIR": "/local/9", "TMPDIR": "/tmp"}},
		{"/var/tmp/me", map[string]string{"TMPDIR": "/var/tmp/me"}},
		{os.TempDir(), nil},
	} {
		if got := Default(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%v: %s, want %s", c.env, got, c.want)
		}
	}
}

func TestPlace(t *testing.T) {
	parent := t.TempDir()
	killed := open(t, parent, 2)
	write(t, Copy(killed.Path(), 1), "half a co")
	kill(t, killed)
	p, other := place(t, parent, 0), place(t, parent, 1000)
	if len(p.Leftovers(true)) != 1 || len(other.Leftovers(true)) != 1 || len(other.Leftovers(false)) != 0 {
		t.Errorf("%v, %v, %v", p.Leftovers(true), other.Leftovers(true), other.Leftovers(false))
	}
	if a := p.About(); a.Folder != parent || a.Free <= 0 || a.Filesystem == "" || filepath.Dir(p.Path()) != parent || other.Quota() != 1000 {
		t.Errorf("%+v, %s", a, p.Path())
	}
	write(t, Copy(other.Path(), 0), "a copy")
	kill(t, other.folder)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if left := names(t, parent); len(left) > 0 {
		t.Errorf("left are %v: the folder of a neighbor that was killed meanwhile goes as well", left)
	}
	if none, err := OpenPlace([]workload.Work{{Kind: workload.ReadWork}}, 1); none != nil || err != nil || none.Close() != nil ||
		none.Path()+none.Device() != "" || none.About() != nil || none.Refuse(nil) != nil || none.Warnings(1, nil) != nil {
		t.Errorf("a run without staged jobs has %+v, %v", none, err)
	}
}

func TestPlaceRefuses(t *testing.T) {
	p := place(t, t.TempDir(), 100_000)
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	for size, want := range map[int64]string{100_000: "", 100_001: "workload.job.scratch_quota", math.MaxInt64: "workload.job.scratch:",
		-1: ""} {
		err := p.Refuse([]workload.File{{Size: size}, {Size: 1}})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a copy of %d bytes: %v, want %q", size, err, want)
		}
	}
}

func TestCrowded(t *testing.T) {
	for _, c := range []struct {
		clients              int
		largest, free, quota int64
		want                 string
	}{
		{10, 100, 1000, 0, ""}, {10, 100, 999, 0, "there are 999 B free"}, {10, 100, -1, 0, ""}, {10, 100, -1, 500, "the quota is 500 B"},
		{10, 100, 5000, 999, "the quota is 999 B"}, {10, 100, 700, 999, "there are 700 B free"}, {0, 100, 0, 0, ""},
		{10, math.MaxInt64, 1000, 0, "10 clients with a copy"},
	} {
		if got := Crowded(c.clients, c.largest, c.free, c.quota); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// With any number of concurrent calls of Take and Give, no more than the limit is taken.
func TestRoom(t *testing.T) {
	r := NewRoom(100)
	var done sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	for range 8 {
		done.Go(func() {
			for range 1000 {
				err := r.Take(40)
				if err == nil {
					if r.now() > 100 {
						panic("more than the limit")
					}
					r.Give(40)
					continue
				}
				mu.Lock()
				refused++
				mu.Unlock()
				if !errors.Is(err, storage.ErrScratch) {
					panic(err)
				}
			}
		})
	}
	done.Wait()
	if r.used != 0 {
		t.Errorf("%d bytes are taken, %d were refused", r.used, refused)
	}
	for _, limit := range []int64{30, 40} {
		r.Limit(limit)
		if err := r.Take(40); (err != nil) != (limit < 40) {
			t.Errorf("40 of %d: %v", limit, err)
		}
	}
	none := NewRoom(0)
	none.Limit(1)
	if err := none.Take(math.MaxInt64); err != nil || r.Take(-1) != nil {
		t.Errorf("without a bound: %v", err)
	}
	none.Give(1)
}

func (r *Room) now() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used
}
