package main

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
)

// rigServer is an HTTP server with a known limit, as a process of its own. Its arguments are the
// kind of the limit and the file to which it writes its address.
//
//	lock     one request at a time, each of 4 ms without CPU time
//	places   four requests at a time, each of 10 ms without CPU time
//	core     each request takes 2 ms of CPU time, on one core by affinity
func rigServer() {
	kind, place := os.Args[1], os.Args[2]
	if kind == "core" {
		var one unix.CPUSet
		one.Set(0)
		if err := setAffinity(&one); err != nil {
			panic(err)
		}
	}
	var mu sync.Mutex
	places := make(chan bool, 4)
	serve := map[string]func(){
		"lock":   func() { mu.Lock(); defer mu.Unlock(); <-time.After(4 * time.Millisecond) },
		"places": func() { places <- true; defer func() { <-places }(); <-time.After(10 * time.Millisecond) },
		"core": func() {
			for range 400 {
				sha256.Sum256(make([]byte, 8<<10))
			}
		},
	}[kind]
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(place+".new", []byte(l.Addr().String()), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(place+".new", place); err != nil {
		panic(err)
	}
	body := []byte(strings.Repeat("x", 1<<10))
	panic(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve()
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(body)
		}
	})))
}

// setAffinity binds all current and future threads of this process to cores.
func setAffinity(set *unix.CPUSet) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, set); err != nil {
			return err
		}
	}
	return nil
}

// rigURL starts a rigServer and returns its URL.
func rigURL(t *testing.T, kind string) string {
	t.Helper()
	place := filepath.Join(t.TempDir(), "address")
	start(t, t.TempDir(), "rigserver", kind, place)
	var address []byte
	require.Eventually(t, "the server's address", func() (up bool) {
		b, err := os.ReadFile(place)
		address = b
		return err == nil
	})
	return "http://" + string(address)
}

// crowdedMachine keeps share of each core busy until t ends, like other programs of a shared
// machine.
func crowdedMachine(t *testing.T, share float64) {
	t.Helper()
	const turn = 20 * time.Millisecond
	end := make(chan bool)
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			runtime.LockOSThread()
			tick := time.NewTicker(turn)
			defer tick.Stop()
			for {
				select {
				case <-end:
					return
				case begin := <-tick.C:
					for x := uint32(1); time.Since(begin) < time.Duration(share*float64(turn)); {
						x = x*1664525 + 1013904223
					}
				}
			}
		})
	}
	t.Cleanup(func() { close(end); all.Wait() })
}

// runApart runs weir as a process of its own, so that the load of this test counts as the load of
// other programs, and returns the findings.
func runApart(t *testing.T, args ...string) *analysis.Findings {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	code, said := started(t, append([]string{"run", "--quiet", "--out", dir, "--set", "load.ramp=100ms", "--set", "load.warmup=400ms", "--set",
		"load.cooldown=100ms"}, args...)...).ended()
	if code != exitFine && code != exitInvalid && code != exitMissed {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	return findings(t, dir)
}

// limitOf returns the resource that limits a run according to its findings.
func limitOf(t *testing.T, f *analysis.Findings) string {
	t.Helper()
	if len(f.Bottleneck) == 0 {
		t.Fatal("nothing is said of what limits the curve")
	}
	return f.Bottleneck[0].Resource
}

// apache starts Apache on a folder and returns its URL.
func apache(t *testing.T, folder string) string {
	t.Helper()
	labtest.Need(t, "apache2")
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	_ = l.Close() // Apache takes it
	conf := fmt.Sprintf(`ServerRoot %s
Listen %s
ServerName localhost
PidFile pid
ErrorLog errors
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
MaxKeepAliveRequests 0
KeepAliveTimeout 60
DocumentRoot %s
<Directory />
Require all granted
</Directory>
`, dir, address, folder)
	path := filepath.Join(dir, "conf")
	require.NoError(t, os.WriteFile(path, []byte(conf), 0o600))
	program := "apache2"
	if _, err := os.Stat("/usr/sbin/apache2"); err == nil {
		program = "/usr/sbin/apache2"
	}
	start(t, dir, program, "-X", "-f", path)
	require.Eventually(t, "the server accepts connections", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return "http://" + address
}

// TestSameAnswer repeats a run while other programs use 30% of the machine. The reported limit is
// the same each time.
func TestSameAnswer(t *testing.T) {
	tier.Quiet(t, "the verdict on servers with a known limit")
	times, least, clients := 3, 2, "1,8,64"
	if os.Getenv("WEIR_LONG") != "" {
		times, least = 20, 19
	}
	crowdedMachine(t, 0.3)
	for name, args := range map[string]func(t *testing.T) []string{
		"built-in": func(*testing.T) []string { return []string{"--target", "built-in"} },
		"nginx": func(t *testing.T) []string {
			s := labtest.Start(t, lab.NginxConfig{Workers: 2})
			return []string{"--target", s.URL, "--set", "files={list: " + listed(t, s.Data, 256<<10) + "}"}
		},
		"xrootd": func(t *testing.T) []string {
			s := labtest.Start(t, lab.XRootDConfig{})
			return []string{"--target", s.URL, "--set", "files.make={count: 20, size: 256KiB}"}
		},
		"apache": func(t *testing.T) []string {
			folder := t.TempDir()
			list := listed(t, folder, 256<<10)
			return []string{"--target", apache(t, folder), "--set", "files={list: " + list + "}"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			own := append(args(t), "--clients", clients, "--duration", "2s")
			said := map[string]int{}
			for range times {
				f := runApart(t, own...)
				said[limitOf(t, f)]++
				t.Log(f.LimitText(), strings.Join(f.Bottleneck[0].Evidence, "\n"))
			}
			t.Log(said)
			most, named := 0, 0
			for what, n := range said {
				most = max(most, n)
				if what != analysis.LimitUnknown {
					named++
				}
			}
			if most < least || named > 1 && times < 20 {
				t.Errorf("%v of %d", said, times)
			}
		})
	}
}

// TestKnownLimitsOfServers runs the command against servers with a known limit. The limit may be
// reported as unknown, which is required if other programs use the machine, but a different limit
// is an error.
func TestKnownLimitsOfServers(t *testing.T) {
	tier.Quiet(t, "the verdict on servers with a known limit")
	times := 1
	if os.Getenv("WEIR_LONG") != "" {
		times = 10
	}
	var right, wrong, all int
	for _, c := range []struct {
		name string
		want []string
		args func(t *testing.T) []string
	}{
		{"a lock", []string{analysis.LimitInside}, func(t *testing.T) []string { return rigArgs(t, "lock") }},
		{"a limit of requests at a time", []string{analysis.LimitInside}, func(t *testing.T) []string { return rigArgs(t, "places") }},
		{"one core by affinity", []string{analysis.ResourceCore}, func(t *testing.T) []string {
			if runtime.NumCPU() < 2 {
				t.Skip("this machine has one core")
			}
			return rigArgs(t, "core")
		}},
		{"a link", []string{analysis.ResourceNetwork}, func(t *testing.T) []string {
			linkNeeds(t)
			return []string{"--target", "built-in", "--clients", "1,4,16", "--duration", "3s", "--set", "link={rate: 50Mbit/s, rtt: 20ms, " +
				"congestion: cubic}", "--set", "workload.part={size: 64KiB, count: 1}"}
		}},
		{"the thread of the built-in server", []string{analysis.ResourceCore}, func(t *testing.T) []string {
			if runtime.NumCPU() < 2 {
				t.Skip("this machine has one core")
			}
			return []string{"--target", "built-in", "--clients", "1,4,16", "--duration", "3s", "--set", "server={cpu_per_page: 4ms, threads: 1}",
				"--set", "workload.part={size: 8KiB, count: 1}"}
		}},
		{"CPU that both share", []string{analysis.ResourceCPU}, func(*testing.T) []string {
			return []string{"--target", "built-in", "--clients", "1,8,64", "--duration", "2s"}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := c.args(t)
			for range times {
				f := runApart(t, args...)
				got := limitOf(t, f)
				all++
				crowded := f.Bottleneck[0].Foreign > 0 || crowded(f)
				switch {
				case slices.Contains(c.want, got):
					right++
				case got == analysis.LimitUnknown, crowded && got == analysis.ResourceCPU:
					t.Logf("cannot tell: %s", strings.Join(f.Bottleneck[0].Evidence, "\n"))
				default:
					wrong++
					t.Errorf("limited by %s, want %v:\n%s", got, c.want, strings.Join(f.Bottleneck[0].Evidence, "\n"))
				}
			}
		})
	}
	t.Logf("%d of %d right, %d wrong", right, all, wrong)
}

func rigArgs(t *testing.T, kind string) []string {
	t.Helper()
	url := rigURL(t, kind)
	list := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(list, []byte("file\n"), 0o600))
	return []string{"--target", url, "--clients", "1,4,16,64", "--duration", "3s", "--set", "files={list: " + list + "}", "--set",
		"workload.verify=0"}
}
