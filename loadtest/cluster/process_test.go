package cluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/storage"
	"weir/storage/local"
	"weir/storage/simulated"
)

// The workers of these tests are processes of their own: this test binary.
const (
	passEnv     = "WEIR_TEST_PASS"
	tallyEnv    = "WEIR_TEST_TALLY"
	patienceEnv = "WEIR_TEST_PATIENCE"
)

func TestMain(m *testing.M) {
	for _, role := range []struct {
		env string
		be  func(string) error
	}{{dirEnv, beController}, {scaleEnv, beScale}, {passEnv, beWorker}} {
		if path := os.Getenv(role.env); path != "" {
			if err := role.be(path); err != nil {
				fmt.Fprintln(os.Stderr, role.env, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	if err := flag.Set("test.parallel", "6"); err != nil { // most tests wait
		panic(err)
	}
	os.Exit(m.Run())
}

func beWorker(path string) error {
	if n, err := strconv.Atoi(os.Getenv(crowdEnv)); err == nil {
		return beCrowd(path, n)
	}
	p, err := ReadPass(path)
	if err != nil {
		return err
	}
	t, err := openTally(os.Getenv(tallyEnv))
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(os.Getenv(patienceEnv))
	if err != nil {
		return err
	}
	return Join(context.Background(), p, JoinOptions{patience: d}, []storage.Driver{t.driver(), local.Driver()})
}

// A tally counts operations in a file, which stays unchanged when its process is killed.
type tally struct{ n *[512]int64 }

const tallied = 0

func openTally(path string) (*tally, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(4096); err != nil {
		return nil, err
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &tally{(*[512]int64)(unsafe.Pointer(&b[0]))}, nil
}

func (t *tally) done() int64 { return atomic.LoadInt64(&t.n[tallied]) }

// driver returns the simulated driver, with successful operations counted.
func (t *tally) driver() storage.Driver {
	d := simulated.Driver()
	open := d.Open
	d.Open = func(ctx context.Context, target storage.Target) (storage.Service, error) {
		s, err := open(ctx, target)
		return counting{s, t}, err
	}
	return d
}

type counting struct {
	storage.Service
	t *tally
}

func (c counting) Client() storage.Client { return countingClient{c.Service.Client(), c.t} }

type countingClient struct {
	storage.Client
	t *tally
}

func (c countingClient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	res, err := c.Client.Do(ctx, op, p)
	if err == nil {
		atomic.AddInt64(&c.t.n[tallied], 1)
	}
	return res, err
}

// A job is a worker that is a process.
type job struct {
	*tally
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error
}

// submit starts a worker process with the pass p.
func submit(t *testing.T, p Pass, patience time.Duration) *job {
	t.Helper()
	dir := t.TempDir()
	pass := filepath.Join(dir, "pass")
	require.NoError(t, p.Write(pass))
	counts, err := openTally(filepath.Join(dir, "tally"))
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	j := &job{tally: counts, cmd: exec.Command(self), done: make(chan struct{})}
	j.cmd.Env = append(os.Environ(), passEnv+"="+pass, tallyEnv+"="+filepath.Join(dir, "tally"), patienceEnv+"="+patience.String())
	j.cmd.Stderr = os.Stderr
	require.NoError(t, j.cmd.Start())
	go func() { j.err = j.cmd.Wait(); close(j.done) }()
	t.Cleanup(j.kill)
	return j
}

// kill ends the process at once.
func (j *job) kill() {
	_ = j.cmd.Process.Kill() // it may have ended
	<-j.done
}

// end waits until the process ends by itself.
func (j *job) end(t *testing.T) {
	t.Helper()
	select {
	case <-j.done:
		if j.err != nil {
			t.Errorf("worker: %v", j.err)
		}
	case <-time.After(2 * time.Minute): // only for a process that hangs
		t.Error("a worker does not end")
	}
}

// done returns the number of operations of workers.
func done(jobs []*job) (sum int64) {
	for _, j := range jobs {
		sum += j.tally.done()
	}
	return sum
}

// done returns the number of operations that were written.
func (n *notes) done() (sum int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, v := range n.intervals {
		sum += v.Done
	}
	return sum
}

// Four processes that connect over the network report all their operations, and as many as four
// workers that are driven over pipes.
func TestFourProcessesOverTheNetwork(t *testing.T) {
	tier.Slow(t, "starts processes")
	t.Parallel()
	d := open(t, ServerOptions{})
	var jobs []*job
	for range 4 {
		jobs = append(jobs, submit(t, d.Pass(), patience))
	}
	conf, n := plan(stepOf(40, 2), stepOf(12, 1)), &notes{}
	conf.Sink = n
	calm := watchCalm(t)
	require.NoError(t, control(t, d, conf, WorkerOptions{Want: 4}))
	for _, j := range jobs {
		j.end(t)
	}
	if did := done(jobs); did == 0 || did != n.done() {
		t.Errorf("the workers did %d operations, %d were written", did, n.done())
	}
	once(t, n)
	conf, local := plan(stepOf(40, 2), stepOf(12, 1)), &notes{}
	conf.Sink = local
	require.NoError(t, Control(t.Context(), conf, peers([]*hired{hire(t, "1"), hire(t, "2"), hire(t, "3"), hire(t, "4")}), ""))
	if a, b := float64(n.done()), float64(local.done()); calm() && (a < .7*b || b < .7*a) {
		t.Errorf("%v operations over the network, %v over pipes", a, b)
	}
}
