package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"weir/internal/burn"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
)

// crowdEnv makes this test binary run so many fake workers.
const crowdEnv = "WEIR_TEST_CROWD"

func beCrowd(path string, n int) error {
	p, err := ReadPass(path)
	if err != nil {
		return err
	}
	return FakeWorkers{Workers: n}.Run(context.Background(), p)
}

// A step change reaches all workers before the step begins, or nearly so.
func TestAStepReachesAllWorkersTogether(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	const workers = 100
	d := open(t, ServerOptions{})
	var mu sync.Mutex
	var latest time.Duration // largest time from the begin of a step to its arrival
	first, last, got := map[int]time.Time{}, map[int]time.Time{}, map[int]int{}
	want := int64(0) // operations: a hundred per worker, server and (partial) second of it
	seen := func(servers int64, s scenario.Step, at time.Time) {
		from, to := s.Begin.UnixNano(), s.Begin.Add(time.Duration(s.Ramp+s.Warmup+s.Duration)).UnixNano()
		mu.Lock()
		defer mu.Unlock()
		if first[s.Number].IsZero() || at.Before(first[s.Number]) {
			first[s.Number] = at
		}
		if at.After(last[s.Number]) {
			last[s.Number] = at
		}
		got[s.Number]++
		want += 100 * servers * ((to+int64(time.Second)-1)/int64(time.Second) - from/int64(time.Second))
		latest = max(latest, at.Sub(s.Begin))
	}
	crowds := []FakeWorkers{
		{Workers: workers / 2, Got: func(s scenario.Step, at time.Time) { seen(1, s, at) }},
		{Workers: workers / 2, Got: func(s scenario.Step, at time.Time) { seen(2, s, at) }, Once: true, Machines: true, Servers: 2},
	}
	ended := make(chan error, len(crowds))
	for _, c := range crowds {
		go func() { ended <- c.Run(t.Context(), d.Pass()) }()
	}
	conf, n := plan(stepOf(500, 2), stepOf(100, 2)), &notes{}
	conf.Sink = n
	calm := watchCalm(t)
	require.NoError(t, control(t, d, conf, WorkerOptions{Want: workers}))
	timely := calm()
	for range crowds {
		require.NoError(t, <-ended)
	}
	if timely && latest > time.Second {
		t.Errorf("a step came %v after its begin", latest)
	}
	for step := 1; step <= 2; step++ {
		if timely && got[step] != workers {
			t.Errorf("%d workers got step %d", got[step], step)
		}
		t.Logf("step %d reached all within %v", step, last[step].Sub(first[step]))
	}
	once(t, n)
	// Clocks that differ by a microsecond may put one end of a step into another second.
	const second = 100 * (workers/2 + 2*workers/2)
	if off := n.done() - want; off%second != 0 || off < -2*second || off > 2*second || want < 2*2*100*workers {
		t.Errorf("%d operations were written, the workers told of %d", n.done(), want)
	}
}

// A thousand workers report each second: the benchmark measures the CPU time and the memory of the
// controller, a process of its own.
func BenchmarkAThousandWorkers(b *testing.B) {
	const workers, processes, seconds = 1000, 4, 10
	if b.N > 1 {
		b.Skip("once is enough")
	}
	dir := b.TempDir()
	self, err := os.Executable()
	require.NoError(b, err)
	start := func(env ...string) *exec.Cmd {
		c := exec.Command(self)
		c.Env = append(os.Environ(), env...)
		c.Stderr = os.Stderr
		require.NoError(b, c.Start())
		return c
	}
	controller := start(scaleEnv+"="+dir, "WEIR_TEST_WANT="+strconv.Itoa(workers))
	pass := filepath.Join(dir, "pass")
	for end := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		if _, err := os.Stat(pass); err == nil {
			break
		}
		if time.Now().After(end) {
			b.Fatal("no controller")
		}
	}
	var crowds []*exec.Cmd
	for range processes {
		crowds = append(crowds, start(passEnv+"="+pass, crowdEnv+"="+strconv.Itoa(workers/processes)))
	}
	for _, c := range append(crowds, controller) {
		if err := c.Wait(); err != nil {
			b.Error(err)
		}
	}
	text := require.File(b, filepath.Join(dir, "cost"))
	var c cost
	require.NoError(b, json.Unmarshal(text, &c))
	telling := 0.0
	for _, c := range crowds {
		telling += (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	}
	b.ReportMetric(1000*telling/workers/seconds, "worker-cpu-ms/s") // includes registration
	b.ReportMetric(c.CPU/c.Seconds, "cores")
	b.ReportMetric(c.Coming, "cpu-s-to-come-in")
	b.ReportMetric(float64(c.Memory)/1e6, "MB")
}

const scaleEnv = "WEIR_TEST_SCALE"

// A cost has the CPU time and memory of a controller.
type cost struct {
	Coming  float64 // CPU time until the first step
	CPU     float64 // of the steps
	Seconds float64
	Memory  int64 // largest resident size
}

func beScale(dir string) error {
	want, err := strconv.Atoi(os.Getenv("WEIR_TEST_WANT"))
	if err != nil {
		return err
	}
	conf := plan(stepOf(5*want, 5), stepOf(10*want, 5))
	out, err := results.Create(filepath.Join(dir, "run"), conf.Plan, results.About{})
	if err != nil {
		return err
	}
	d, err := NewServer(ServerOptions{Address: "127.0.0.1", State: filepath.Join(dir, "state")})
	if err != nil {
		return err
	}
	var c cost
	var begun time.Time
	n := &notes{}
	conf.Sink = watching{out, n, func() { begun = time.Now(); c.Coming = burn.Process().Seconds() }}
	if err := d.Pass().Write(filepath.Join(dir, "pass")); err != nil {
		return err
	}
	if err := errors.Join(d.Control(context.Background(), conf, WorkerOptions{Want: want, Wait: time.Minute}), d.Close()); err != nil {
		return err
	}
	c.Seconds = time.Since(begun).Seconds()
	c.CPU = burn.Process().Seconds() - c.Coming
	if c.Memory, err = lab.StatusBytes(os.Getpid(), "VmHWM:"); err != nil {
		return err
	}
	text, _ := json.Marshal(c)
	fmt.Fprintln(os.Stderr, string(text))
	return os.WriteFile(filepath.Join(dir, "cost"), text, 0o600)
}

// watching calls begun when the first step begins.
type watching struct {
	*results.Writer
	n     *notes
	begun func()
}

func (w watching) Event(e measure.Event) error {
	if e.Kind == measure.EventStep && e.Step == 1 {
		w.begun()
	}
	return w.Writer.Event(e)
}
