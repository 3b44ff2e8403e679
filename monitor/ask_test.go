package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/burn"
	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/xrootd"
)

// open returns the service of a lab system, with the system's credentials.
func open(t testing.TB, s *lab.System) storage.Service {
	t.Helper()
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	var auth storage.Auth
	b, err := json.Marshal(s.Settings)
	if err == nil {
		err = json.Unmarshal(b, &auth)
	}
	require.NoError(t, err)
	cred, err := auth.Read()
	require.NoError(t, err)
	service, err := xrootd.Driver().Open(t.Context(), storage.Target{URL: u, Cred: cred})
	require.NoError(t, err)
	t.Cleanup(func() { _ = service.Close() })
	return service
}

// nobody is a Progress that discards all reports.
type nobody struct{}

func (nobody) Reached(storage.Phase) {}
func (nobody) Moved(int)             {}
func (nobody) ServedBy(string)       {}

// transfer writes and reads files through one session each.
func transfer(t *testing.T, s storage.Service, files int, size int64) (wire int64) {
	t.Helper()
	for i := range files {
		c := s.Client()
		path := "load/f" + string(rune('a'+i))
		for _, op := range []storage.Op{
			{Kind: storage.Write, Path: path, Size: size, Seed: uint64(i)},
			{Kind: storage.Read, Path: path, Size: size},
		} {
			op.Timeout = 20 * time.Second
			r, err := c.Do(t.Context(), &op, nobody{})
			if err != nil {
				t.Fatal(op.Kind, err)
			}
			wire += r.Wire
		}
		require.NoError(t, c.Close())
	}
	return wire
}

// services sums up the servers' statistics, by kind.
func (k *keep) services() (sum map[string]Service, errs []string, procs int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	sum = map[string]Service{}
	for _, s := range k.all {
		if s.Role == "server" && s.Error != "" {
			errs = append(errs, s.Host+": "+s.Error)
		}
		if s.Service == nil {
			continue
		}
		v := sum[s.Service.Kind]
		v.User += s.Service.User
		v.System += s.Service.System
		v.Received += s.Service.Received
		v.Sent += s.Service.Sent
		v.Logins += s.Service.Logins
		v.Redirects += s.Service.Redirects
		v.Pid++ // samples
		v.Late = v.Late || s.Service.Late
		if v.Ops == nil {
			v.Ops = map[string]int64{}
		}
		for name, n := range s.Service.Ops {
			v.Ops[name] += n
		}
		sum[s.Service.Kind] = v
		procs += len(s.Procs)
	}
	return sum, errs, procs
}

// TestAskCluster polls a redirector and two data servers while files move.
func TestAskCluster(t *testing.T) {
	s := labtest.Start(t, lab.XRootDConfig{Servers: 2})
	service := open(t, s)
	k := &keep{}
	w, err := Start(t.Context(), nil, Options{Target: s.URL, Reporter: service.(storage.Reporter)}, k)
	require.NoError(t, err)
	require.Eventually(t, "all servers tell", func() bool {
		sum, errs, _ := k.services()
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return sum[Redirector].Pid >= 1 && sum[DataServer].Pid >= 2
	})
	wire := transfer(t, service, 4, 4<<20)
	require.Eventually(t, "what the closed sessions moved", func() bool {
		sum, _, _ := k.services()
		return sum[DataServer].Sent >= 16<<20
	})
	require.NoError(t, w.Stop())
	sum, errs, procs := k.services()
	ds, rd := sum[DataServer], sum[Redirector]
	t.Logf("redirector %+v\ndata servers %+v\nwire %d", rd, ds, wire)
	if moved := rd.Received + rd.Sent + ds.Received + ds.Sent; float64(moved) < 0.99*float64(wire) || float64(moved) > 1.02*float64(wire) {
		t.Errorf("the servers counted %d bytes, the clients %d", moved, wire)
	}
	if !ds.Late || ds.Ops["open"] != 8 || rd.Redirects < 8 || rd.Logins < 4 || ds.Logins < 4 || ds.User+ds.System <= 0 || len(errs) > 0 {
		t.Errorf("%+v\n%+v\n%v", rd, ds, errs)
	}
	if procs > 0 {
		t.Errorf("%d samples show processes that /proc shows, too", procs)
	}
	if found := sum2(k, "xrootd"); found.Count < 6 || found.User+found.System <= 0 {
		t.Errorf("/proc shows %d of 3 xrootd and 3 cmsd: %+v", found.Count, found)
	}
}

// sum2 adds up the samples of a group of this machine's processes.
func sum2(k *keep, name string) Proc {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []*Sample
	for _, s := range k.all {
		if s.Service == nil {
			all = append(all, s)
		}
	}
	return sum(all, name)
}

// TestAskRestarted: a server that is killed is reported once, and queried again when it is back.
func TestAskRestarted(t *testing.T) {
	s := labtest.Start(t, lab.XRootDConfig{})
	service := open(t, s)
	k := &keep{}
	w, err := Start(t.Context(), nil, Options{Target: s.URL, Reporter: service.(storage.Reporter)}, k)
	require.NoError(t, err)
	tell := func() int { sum, _, _ := k.services(); return sum[DataServer].Pid }
	require.Eventually(t, "the server tells", func() bool { return tell() > 0 })
	s.Kill()
	require.Eventually(t, "the lack of responses is reported", func() bool { _, errs, _ := k.services(); return len(errs) > 0 })
	require.NoError(t, s.Restart(t.Context()))
	before := tell()
	require.Eventually(t, "it tells again", func() bool { return tell() > before })
	require.NoError(t, w.Stop())
	sum, errs, _ := k.services()
	if len(errs) != 1 || sum[DataServer].Logins > 20 {
		t.Errorf("%v %+v", errs, sum)
	}
}

// TestAskStopped: a server that is stopped does not respond, and blocks neither the watch nor the
// other hosts.
func TestAskStopped(t *testing.T) {
	s := labtest.Start(t, lab.XRootDConfig{})
	service := open(t, s)
	k := &keep{}
	w, err := Start(t.Context(), nil, Options{Target: s.URL, Reporter: service.(storage.Reporter), Timeout: time.Second}, k)
	require.NoError(t, err)
	require.Eventually(t, "the server tells", func() bool { sum, _, _ := k.services(); return sum[DataServer].Pid > 0 })
	require.NoError(t, s.Signal(syscall.SIGSTOP))
	require.Eventually(t, "the lack of responses is reported", func() bool { _, errs, _ := k.services(); return len(errs) > 0 })
	require.NoError(t, w.Stop())
	require.NoError(t, s.Signal(syscall.SIGCONT))
	if _, errs, _ := k.services(); len(errs) > 3 {
		t.Errorf("%v", errs)
	}
}

// played is a Reporter whose results are functions of a test.
type played struct {
	servers func() ([]string, error)
	report  func(server string) ([]byte, error)
	now     atomic.Int32
	most    atomic.Int32
}

func (p *played) Servers(context.Context) ([]string, error) { return p.servers() }
func (p *played) Report(ctx context.Context, server string) ([]byte, error) {
	n := p.now.Add(1)
	defer p.now.Add(-1)
	p.most.Store(max(p.most.Load(), n))
	return p.report(server)
}

// TestAskRefused: a server that refuses is reported once in two minutes, and retried at growing
// intervals. The other servers are queried each second.
func TestAskRefused(t *testing.T) {
	text := require.File(t, "testdata/xrootd/server.xml")
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := map[string]int{}
		p := &played{
			servers: func() ([]string, error) { return []string{"203.0.113.1:1094", "203.0.113.2:1094"}, nil },
			report: func(server string) ([]byte, error) {
				mu.Lock()
				defer mu.Unlock()
				asked[server]++
				if server == "203.0.113.1:1094" {
					return nil, errors.New("permission denied")
				}
				return text, nil
			},
		}
		k := &keep{}
		w := &Watch{stop: make(chan struct{}), sink: k, cancel: func() {}}
		o := Options{Target: "root://203.0.113.1", Reporter: p, Timeout: time.Second, servers: &servers{}}
		w.runs.Go(func() { w.ask(t.Context(), o, newClock()) })
		<-time.After(2*time.Minute + 300*time.Millisecond)
		require.NoError(t, w.Stop())
		sum, errs, procs := k.services()
		if len(errs) != 1 || !strings.Contains(errs[0], "permission denied") {
			t.Errorf("%q", errs)
		}
		if n := sum[DataServer].Pid; n < 118 || n > 122 || procs != n {
			t.Errorf("%d samples in 120 s, %d with the process", n, procs)
		}
		if n := asked["203.0.113.1:1094"]; n < 5 || n > 12 {
			t.Errorf("the one that refuses was asked %d times", n)
		}
		if p.most.Load() > 2 {
			t.Errorf("%d questions at once", p.most.Load())
		}
	})
}

// BenchmarkAsk reports the cost of a request for this process, and, by the server's own account,
// for the server.
func BenchmarkAsk(b *testing.B) {
	ctx, s := b.Context(), labtest.Start(b, lab.XRootDConfig{})
	service := open(b, s)
	asks := service.(storage.Reporter)
	ask := func() *statistics {
		text, err := asks.Report(ctx, s.Servers[0].Address)
		require.NoError(b, err)
		stats, err := parseStatistics(text)
		require.NoError(b, err)
		return stats
	}
	first, before := ask(), burn.Process()
	for b.Loop() {
		ask()
	}
	last := ask()
	n := float64(b.N)
	b.ReportMetric((burn.Process()-before).Seconds()/n*1e6, "own-us/op")
	b.ReportMetric((last.user()+last.system()-first.user()-first.system())/n*1e6, "server-us/op")
}
