package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A usage is the cost of a finished process: time, CPU time and memory.
type usage struct {
	wall time.Duration
	cpu  time.Duration // user and system, from wait4, including children that were waited for
	peak int64         // bytes, largest resident memory
	out  []byte        // its standard output
	code int
}

// childTimeout is the longest duration of a process.
const childTimeout = 3 * time.Minute

// runChild runs a program to its end. An exit code other than 0 is an error
// unless it is one of fine. watch, if not nil, is called with the process id
// while it runs and must return soon after its context ends.
func runChild(ctx context.Context, watch func(ctx context.Context, pid int), fine []int, argv ...string) (usage, error) {
	ctx, cancel := context.WithTimeout(ctx, childTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return usage{}, err
	}
	watching, done := context.WithCancel(ctx)
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		if watch != nil {
			watch(watching, cmd.Process.Pid)
		}
	}()
	err := cmd.Wait()
	u := usage{wall: time.Since(begin), out: out.Bytes(), code: cmd.ProcessState.ExitCode(),
		cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.peak = ru.Maxrss << 10
	}
	done()
	<-seen
	if err == nil || ctx.Err() == nil && slices.Contains(fine, u.code) {
		return u, nil
	}
	return u, fmt.Errorf("%s: %w\n%s%s", strings.Join(argv, " "), err, tail(errs.Bytes()), tail(out.Bytes()))
}

func tail(b []byte) []byte { return b[max(0, len(b)-1500):] }

// groupCPU returns the CPU time that the living processes of a process group
// have used, from /proc. It counts in hundredths of a second.
func groupCPU(group int) (time.Duration, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	var ticks int64
	found := false
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended meanwhile
		}
		// The name, in parentheses, may hold anything; fields count from after it.
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(f) < 13 || f[2] != strconv.Itoa(group) {
			continue
		}
		found = true
		for _, field := range f[11:13] { // utime, stime
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", path, err)
			}
			ticks += n
		}
	}
	if !found {
		return 0, fmt.Errorf("no process of group %d is left", group)
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// self returns the path of this program.
func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// child runs a program to its end.
func (r *rig) child(argv ...string) (usage, error) { return runChild(r.Context(), nil, nil, argv...) }

// served runs a program to its end, and also returns the CPU time that a process group used
// meanwhile; group 0 stands for no process group.
func (r *rig) served(group int, argv ...string) (u usage, cpu time.Duration, err error) {
	cpu, err = during(group, func() (err error) {
		u, err = r.child(argv...)
		return err
	})
	return u, cpu, err
}

// bulk runs a program that transfers a number of files with a total number of bytes.
func (r *rig) bulk(group, files int, bytes int64, argv ...string) (figures, error) {
	u, served, err := r.served(group, argv...)
	if err != nil {
		return nil, err
	}
	gb := float64(bytes) / 1e9
	f := figures{
		throughput: float64(bytes) / u.wall.Seconds(), clientCPU: u.cpu.Seconds() / gb,
		rate: float64(files) / u.wall.Seconds(), requestCPU: u.cpu.Seconds() / float64(files),
	}
	if group > 0 {
		f[serverCPU] = served.Seconds() / gb
		f[serverBusy] = f[serverCPU] * f[throughput] / 1e9
	}
	return f, nil
}

// curlSide runs curl with arguments that transfer a number of files with a total number of bytes.
func (r *rig) curlSide(files int, bytes int64, group int, args ...string) side {
	argv := append([]string{"curl", "--silent", "--show-error", "--fail"}, args...)
	return side{"curl", func() (figures, error) { return r.bulk(group, files, bytes, argv...) }}
}

// script returns a side that runs a shell script which transfers a number of files, without name
// servers, because each process of xrdcp sends them four queries.
func (r *rig) script(name string, files int, bytes int64, group int, script string) side {
	return side{name, func() (figures, error) {
		argv, err := withoutDNS(r.Context(), []string{"sh", "-c", script})
		if err != nil {
			return nil, err
		}
		return r.bulk(group, files, bytes, argv...)
	}}
}

// during returns the CPU time that a process group uses while f runs; 0
// without a group.
func during(group int, f func() error) (time.Duration, error) {
	if group == 0 {
		return 0, f()
	}
	before, err := groupCPU(group)
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := groupCPU(group)
	return after - before, err
}

// curlGets returns the arguments for curl to read url n times over a number of connections.
func curlGets(url string, n, streams int) []string {
	args := []string{url + "?[1-" + strconv.Itoa(n) + "]", "--output", "/dev/null"}
	return append(args, parallel(streams)...)
}

// curlPuts returns the arguments for curl to send file n times below url over a number of
// connections. Names are reused, so that the files on the server stay few.
func curlPuts(file, url string, n, streams int) []string {
	var args []string
	for i := range n {
		args = append(args, "--upload-file", file, url+"/curl-"+strconv.Itoa(i%32), "--output", "/dev/null")
	}
	return append(args, parallel(streams)...)
}

func parallel(streams int) []string {
	if streams == 1 {
		return nil
	}
	return []string{"--parallel", "--parallel-immediate", "--parallel-max", strconv.Itoa(streams)}
}

// iperfSide receives with iperf3 over a number of streams; the sender uses sendfile.
func (r *rig) iperfSide(port string, streams int) side {
	return side{"iperf3 -R -Z", func() (figures, error) {
		seconds := max(1, int(r.hold.Round(time.Second).Seconds()))
		u, err := r.child("iperf3", "--client", "127.0.0.1", "--port", port, "--reverse", "--zerocopy",
			"--parallel", strconv.Itoa(streams), "--time", strconv.Itoa(seconds), "--json")
		if err != nil {
			return nil, err
		}
		var said struct {
			End struct {
				Received struct {
					Bytes float64 `json:"bytes"`
					Rate  float64 `json:"bits_per_second"`
				} `json:"sum_received"`
			} `json:"end"`
		}
		if err := json.Unmarshal(u.out, &said); err != nil {
			return nil, fmt.Errorf("iperf3: %w", err)
		}
		got := said.End.Received
		return figures{throughput: got.Rate / 8, clientCPU: u.cpu.Seconds() / (got.Bytes / 1e9)}, nil
	}}
}

// wrkSide requests url over a number of connections with one thread; headers may be added.
func (r *rig) wrkSide(url string, connections int, headers ...string) side {
	return side{"wrk", func() (figures, error) {
		// A thousand TLS handshakes may take longer than a shortened benchmark: then there was no
		// response.
		for seconds := max(1, int(r.hold.Round(time.Second).Seconds())); ; seconds *= 2 {
			f, err := r.wrkFor(url, connections, seconds, headers)
			if err != nil || f[rate] > 0 || seconds > 60 {
				return f, err
			}
		}
	}}
}

func (r *rig) wrkFor(url string, connections, seconds int, headers []string) (figures, error) {
	args := []string{"wrk", "-t1", "-c", strconv.Itoa(connections), "-d", strconv.Itoa(seconds) + "s"}
	for _, h := range headers {
		args = append(args, "-H", h)
	}
	u, err := r.child(append(args, url)...)
	if err != nil {
		return nil, err
	}
	perSecond, err := number(`Requests/sec:\s+([0-9.]+)`, u.out)
	if err != nil {
		return nil, err
	}
	requests, err := number(`([0-9]+) requests in`, u.out)
	if err != nil {
		return nil, err
	}
	return figures{rate: perSecond, requestCPU: u.cpu.Seconds() / requests}, nil
}

// number finds a number in the output of a program.
func number(pattern string, text []byte) (float64, error) {
	m := regexp.MustCompile(pattern).FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("no %s in %q", pattern, text)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

func TestGroupCPU(t *testing.T) {
	u, err := runChild(t.Context(), nil, []int{3}, "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 3")
	if err != nil || u.code != 3 || u.cpu <= 0 || u.wall < u.cpu/4 {
		t.Errorf("a busy child: %+v, %v", u, err)
	}
	if _, err := runChild(t.Context(), nil, nil, "sh", "-c", "echo reason >&2; exit 3"); err == nil ||
		!strings.Contains(err.Error(), "reason") {
		t.Errorf("a child that fails: %v, want its reason", err)
	}
	if _, err := groupCPU(1 << 30); err == nil {
		t.Error("a group that is not there has CPU time")
	}
}
