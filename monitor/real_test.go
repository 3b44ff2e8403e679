package monitor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/burn"
	"weir/internal/require"
	"weir/internal/tier"
)

// TestMain lets the test binary act as other programs.
func TestMain(m *testing.M) {
	switch os.Getenv("WEIR_PLAY") {
	case "busy":
		busy()
		return
	case "threads":
		manyThreads()
		return
	case "idle":
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// busy uses CPU time in user mode and in the kernel, prints a line, and runs until its standard
// input ends.
func busy() {
	zero, err := os.Open("/dev/zero")
	if err != nil {
		panic(err)
	}
	buf := make([]byte, 1<<20)
	for x := uint32(1); burn.Process() < 1200*time.Millisecond; {
		for range 2_000_000 {
			x = x*1664525 + 1013904223
		}
		buf[0] = byte(x)
		if _, err := io.ReadFull(zero, buf); err != nil {
			panic(err)
		}
	}
	fmt.Println("done")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func playCommand(what string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "WEIR_PLAY="+what)
	return cmd
}

// playing starts the test binary as another program and returns it with its
// standard input and output.
func playing(t *testing.T, what string) (*exec.Cmd, io.WriteCloser, *bufio.Reader) {
	t.Helper()
	cmd := playCommand(what)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	started(t, cmd)
	return cmd, in, bufio.NewReader(out)
}

// sum adds up the usage of a group of processes in the samples.
func sum(samples []*Sample, name string) (p Proc) {
	for _, s := range samples {
		for _, q := range s.Procs {
			if q.Name == name {
				p.User += q.User
				p.System += q.System
				p.Read += q.Read
				p.Written += q.Written
				p.Count = max(p.Count, q.Count)
			}
		}
	}
	return p
}

func near(t *testing.T, what string, have, want, tolerance float64) {
	t.Helper()
	t.Logf("%s: %.4g, should be %.4g: off by %.2f %%", what, have, want, 100*(have/want-1))
	if math.Abs(have-want) > tolerance*want {
		t.Errorf("%s: %v, should be %v within %v %%", what, have, want, 100*tolerance)
	}
}

// TestCPUAgreesWithWait4: the usage of a busy process as it was watched, second by second, and as
// the kernel reports it at its end.
func TestCPUAgreesWithWait4(t *testing.T) {
	tier.Slow(t, "keeps cores busy")
	cmd, in, out := playing(t, "busy")
	k := &keep{}
	name := fmt.Sprintf("pid %d", cmd.Process.Pid)
	w, err := Start(context.Background(), []Host{{Name: "here", Pids: []int{cmd.Process.Pid}}}, Options{}, k)
	require.NoError(t, err)
	line, err := out.ReadString('\n')
	if err != nil || line != "done\n" {
		t.Fatal(line, err)
	}
	require.NoError(t, w.Stop())
	_ = in.Close()
	require.NoError(t, cmd.Wait())
	p := sum(k.of("here"), name)
	state := cmd.ProcessState
	near(t, "CPU seconds", p.User+p.System, (state.UserTime() + state.SystemTime()).Seconds(), 0.03)
	near(t, "user CPU seconds", p.User, state.UserTime().Seconds(), 0.03)
	if p.Read < 100<<20 {
		t.Errorf("%d bytes read", p.Read)
	}
	if len(k.of("here")) < 2 {
		t.Errorf("%d samples", len(k.of("here")))
	}
}

// TestOthersAreSeen: a program outside all groups, compared with the kernel's report at its end.
func TestOthersAreSeen(t *testing.T) {
	tier.Slow(t, "keeps cores busy")
	k := &keep{}
	w, err := Start(context.Background(), []Host{{Name: "here"}}, Options{}, k)
	require.NoError(t, err)
	looked(t, k)
	cmd, in, out := playing(t, "busy")
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, w.Stop())
	_ = in.Close()
	require.NoError(t, cmd.Wait())
	others := 0.0
	for _, s := range k.of("here") {
		others += s.Others
	}
	// the machine's other programs count as well
	if used := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(); others < 0.97*used {
		t.Errorf("%v CPU seconds of others, the program used %v", others, used)
	}
}

// TestOwnCPUWithPrograms: this process and the programs that it starts and waits for are counted
// together only if that is requested.
func TestOwnCPUWithPrograms(t *testing.T) {
	tier.Slow(t, "starts programs")
	with, without := &keep{}, &keep{}
	var before, after [2]unix.Rusage
	usage := func(to *[2]unix.Rusage) {
		for i, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
			require.NoError(t, unix.Getrusage(who, &to[i]))
		}
	}
	watch := func(k *keep, children bool) *Watch {
		w, err := Start(context.Background(), []Host{{Name: "here"}}, Options{Children: children}, k)
		require.NoError(t, err)
		return w
	}
	usage(&before)
	w, v := watch(with, true), watch(without, false)
	looked(t, with)
	looked(t, without)
	cmd, in, out := playing(t, "busy")
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	require.NoError(t, cmd.Wait())
	require.NoError(t, errors.Join(w.Stop(), v.Stop()))
	usage(&after)
	spent := func(i int) float64 {
		return float64(microseconds(after[i].Utime)+
			microseconds(after[i].Stime)-microseconds(before[i].Utime)-microseconds(before[i].Stime)) / 1e6
	}
	p, q := sum(with.of("here"), "weir"), sum(without.of("here"), "weir")
	near(t, "CPU seconds with programs", p.User+p.System, spent(0)+spent(1), 0.03)
	if alone := q.User + q.System; alone > spent(0)+0.001 || spent(1) < 1 {
		t.Errorf("%v s without programs, rusage has %v s and %v s", alone, spent(0), spent(1))
	}
}

// TestProcessDeath: a watched process is killed in the middle. The sums remain, samples go on, and
// the loss is reported once.
func TestProcessDeath(t *testing.T) {
	cmd, _, _ := playing(t, "idle")
	require.Eventually(t, "the process has its program's size", func() bool {
		st, err := newProcFS("", "").stat(cmd.Process.Pid)
		return err == nil && st.rss > 4<<20
	})
	l := newLocal(Host{Pids: []int{cmd.Process.Pid}}, Options{}, nil, newClock())
	defer l.close()
	look := func() (*Sample, error) { return l.look(context.Background()) }
	if _, err := look(); err != nil {
		t.Fatal(err)
	}
	s, err := look()
	if err != nil || len(s.Procs) != 2 || s.Procs[1].Count != 1 || s.Procs[1].Role != "server" || s.Procs[1].Files < 3 ||
		s.Procs[1].RSS < 1<<20 {
		t.Fatalf("%+v, %v", s, err)
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	s, err = look()
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("no process of pid %d runs", cmd.Process.Pid)) {
		t.Errorf("the error is %v", err)
	}
	if p := sum([]*Sample{s}, fmt.Sprintf("pid %d", cmd.Process.Pid)); p.Count != 0 || p.User < 0 || p.System < 0 {
		t.Errorf("%+v", p)
	}
	if _, err = look(); err != nil {
		t.Errorf("reported again: %v", err)
	}
}
