package cluster

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
	"weir/storage/local"
)

type looks struct {
	mu  sync.Mutex
	all []*monitor.Sample
}

func (l *looks) Sample(s *monitor.Sample) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
	return nil
}

// of counts the samples with so many workers.
func (l *looks) of(workers int) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.all {
		for _, p := range s.Procs {
			if p.Name == "weir" && p.Count == workers {
				n++
			}
		}
	}
	return n
}

// One of two workers on a machine monitors it for both workers. If it is gone, the other worker
// monitors the machine.
func TestTheWorkersMachineIsWatched(t *testing.T) {
	tier.Slow(t, "starts processes")
	t.Parallel()
	const patience = 3 * time.Second
	ahead := func() time.Time { return time.Now().Add(90 * time.Second) }
	d := open(t, ServerOptions{clock: ahead})
	jobs := []*job{submit(t, d.Pass(), patience), submit(t, d.Pass(), patience)}
	conf, n, l := plan(stepOf(4, 12)), &notes{}, &looks{}
	conf.Sink = n
	var kill sync.Once
	begin := ahead()
	n.seen = func(v *measure.Interval) {
		if l.of(2) >= 3 {
			kill.Do(func() { go jobs[0].kill() }) // the monitoring worker is one of the two
		}
	}
	require.NoError(t, control(t, d, conf, WorkerOptions{Want: 2, patience: patience, Samples: l, away: true}))
	host, _ := os.Hostname()
	both, alone := l.of(2), l.of(1)
	var last time.Time
	for _, s := range l.all {
		if s.Host != host || s.Role != "client" || s.Time.Before(begin) || s.Time.After(ahead()) || s.CPU == nil || s.Step > 1 {
			t.Errorf("sample %+v", s)
		}
		if s.Time.Before(last) {
			t.Errorf("a sample of %v after one of %v", s.Time, last)
		}
		last = s.Time
	}
	if len(l.all) < 5 || both == 0 || alone == 0 {
		t.Errorf("%d samples, %d of both processes, %d of one", len(l.all), both, alone)
	}
}

// ledgers records the paths that workers create.
type ledgers struct {
	mu   sync.Mutex
	made map[string]int
	gone int
}

func (l *ledgers) Created(path string, _ int64, _ uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made[path]++
	return nil
}

func (l *ledgers) Removed(string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone++
	return nil
}

// The manifest of the run contains each file before a worker writes it, also if clients have
// replaced the clients of a worker that was killed.
func TestWorkersTellWhatTheyMake(t *testing.T) {
	tier.Slow(t, "starts processes")
	t.Parallel()
	const patience = 3 * time.Second
	dir := t.TempDir()
	d := open(t, ServerOptions{})
	jobs := []*job{submit(t, d.Pass(), patience), submit(t, d.Pass(), patience)}
	conf, n, l := plan(stepOf(20, 2), stepOf(20, 3)), &notes{}, &ledgers{made: map[string]int{}}
	conf.Sink = n
	conf.Plan.Target, conf.Plan.Driver = "file://"+dir, "local"
	conf.Plan.Work = workload.Work{Kind: "write", Session: "kept", Size: workload.Dist{Fixed: 4096},
		Think: workload.Span{Fixed: unit.Duration(50 * time.Millisecond)}}
	service, err := OpenService(t.Context(), conf.Plan, []storage.Driver{local.Driver()}, nil)
	require.NoError(t, err)
	own := conf
	own.Service, own.Manifest = service, l
	if conf.Files, err = engine.Prepare(t.Context(), own, nil, nil); err != nil {
		t.Fatal(err)
	}
	var kill sync.Once
	n.seen = func(*measure.Interval) { kill.Do(jobs[0].kill) }
	calm := watchCalm(t)
	require.NoError(t, control(t, d, conf, WorkerOptions{Want: 2, Manifest: l, patience: patience}))
	timely := calm()
	jobs[1].end(t)
	files, homes, numbers := 0, 0, map[string]bool{}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil || name == ".":
			return err
		case strings.HasPrefix(e.Name(), ".weir-unfinished-"):
			return nil // of the killed worker: it goes with its folder
		case e.IsDir():
			name += "/"
			homes++
			numbers[name] = true
		default:
			files++
		}
		if l.made[name] == 0 {
			t.Errorf("%s was made and is not in the manifest", name)
		}
		return nil
	})
	if err != nil || files < 100 || timely && (homes != 1+20+10 || !numbers["weir-test/c0029/"]) {
		t.Errorf("%d files in %d folders, %v", files, homes, err)
	}
	if n.has("error", "") {
		t.Errorf("events %v", n.events)
	}
}
