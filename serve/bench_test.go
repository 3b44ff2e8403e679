package serve

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/serve/servetest/requests"
)

const gib = 1 << 30

// BenchmarkBulk compares the server with nginx and sendfile, in turn, on the same file: curl reads
// it with 1 and with 16 streams. It reports the medians over the rounds, and ratios to nginx.
func BenchmarkBulk(b *testing.B) {
	dir, sides := contestants(b)
	f, err := os.Create(filepath.Join(dir, "big"))
	require.NoError(b, err)
	if _, err := io.WriteString(f, requests.Content(1, gib)); err != nil {
		b.Fatal(err)
	}
	require.NoError(b, f.Close())
	labtest.Need(b, "curl")
	for _, streams := range []int{1, 16} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			each := gib / streams * min(streams, 3)
			for b.Loop() {
				compare(b, sides, 7, func(s *side) (amount float64) { return s.curl(b, streams, each) })
			}
		})
	}
}

// BenchmarkSmall reports requests/s of wrk in comparison with nginx.
func BenchmarkSmall(b *testing.B) {
	labtest.Need(b, "wrk")
	dir, sides := contestants(b)
	for _, size := range []int{4 << 10, 1 << 20} {
		requests.Write(b, requests.Content(2, size), dir, "small")
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			for b.Loop() {
				compare(b, sides[:2], 3, func(s *side) float64 { return s.wrk(b) })
			}
		})
	}
}

// A side is one server that is measured.
type side struct {
	name, url, big string
	pids           []int
	rates, cpus    []float64 // amount/s, CPU seconds per amount, of each round
}

// contestants starts nginx, this server on the same folder, and this server
// with synthetic files.
func contestants(b *testing.B) (dir string, sides []*side) {
	n := labtest.Start(b, lab.NginxConfig{Workers: 2})
	ours, url := startChild(b, n.Data)
	invented, url2 := startChild(b, "1x1GiB")
	resp, err := http.Get(n.URL + "/")
	require.NoError(b, err)
	_ = resp.Body.Close()
	return n.Data, []*side{
		{name: "nginx", url: n.URL, big: "big", pids: children(b, n.Pids())},
		{name: "serve", url: url, big: "big", pids: []int{ours.Process.Pid}},
		{name: "synthetic", url: url2, big: "file000000.dat", pids: []int{invented.Process.Pid}},
	}
}

// compare measures the sides in turn, rounds times, and reports.
func compare(b *testing.B, sides []*side, rounds int, measure func(*side) float64) {
	for _, s := range sides {
		s.rates, s.cpus = nil, nil
		measure(s) // warm
	}
	for range rounds {
		for _, s := range sides {
			cpu, start := cpuTime(b, s.pids), time.Now()
			amount := measure(s)
			s.rates = append(s.rates, amount/time.Since(start).Seconds())
			s.cpus = append(s.cpus, (cpuTime(b, s.pids)-cpu)/amount)
		}
	}
	for _, s := range sides {
		b.ReportMetric(median(s.rates), s.name+"/s")
		b.ReportMetric(median(s.cpus)*1e3, s.name+"-cpu-ms")
	}
	for _, s := range sides[1:] {
		spread(b, s.name+"-rate-ratio", ratios(s.rates, sides[0].rates))
		spread(b, s.name+"-cpu-ratio", ratios(s.cpus, sides[0].cpus))
	}
	b.ReportMetric(0, "ns/op")
}

// curl reads bytes of the big file in each of some streams and returns GB.
func (s *side) curl(b *testing.B, streams, bytes int) float64 {
	var wg sync.WaitGroup
	for range streams {
		wg.Go(func() {
			cmd := exec.CommandContext(b.Context(), "curl", "-sSf", "-o", "/dev/null", "-r", fmt.Sprintf("0-%d", bytes-1), s.url+"/"+s.big)
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Errorf("curl %s: %v %s", s.name, err, out)
			}
		})
	}
	wg.Wait()
	return float64(streams*bytes) / 1e9
}

// wrk runs wrk and returns the number of completed requests.
func (s *side) wrk(b *testing.B) float64 {
	out := requests.MustRun(b, "wrk", "-t1", "-c64", "-d1", s.url+"/small")
	if strings.Contains(out, "Non-2xx") {
		b.Errorf("wrk %s: %s", s.name, out)
	}
	m := regexp.MustCompile(`(\d+) requests in`).FindStringSubmatch(out)
	if m == nil {
		b.Fatalf("wrk: %s", out)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	require.NoError(b, err)
	return n
}

// children returns pids and the pids of their children.
func children(b *testing.B, pids []int) []int {
	all := slices.Clone(pids)
	for _, pid := range pids {
		list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if err != nil {
			b.Skipf("the kernel does not list children: %v", err)
		}
		for _, field := range strings.Fields(string(list)) {
			child, err := strconv.Atoi(field)
			require.NoError(b, err)
			all = append(all, child)
		}
	}
	return all
}

// cpuTime returns the seconds that processes ran, to the nanosecond.
func cpuTime(b *testing.B, pids []int) float64 {
	total := 0.0
	for _, pid := range pids {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil || len(tasks) == 0 {
			b.Fatalf("process %d: %v, %d tasks", pid, err, len(tasks))
		}
		for _, task := range tasks {
			line, err := os.ReadFile(task)
			if err != nil {
				continue // a thread that just ended
			}
			ns, _, _ := strings.Cut(string(line), " ")
			n, err := strconv.ParseFloat(ns, 64)
			require.NoError(b, err)
			total += n / 1e9
		}
	}
	return total
}

// spread reports the median of x and its first and third quartile.
func spread(b *testing.B, name string, x []float64) {
	x = slices.Sorted(slices.Values(x))
	b.ReportMetric(median(x), name)
	b.ReportMetric(x[len(x)/4], name+"-q1")
	b.ReportMetric(x[len(x)*3/4], name+"-q3")
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

func ratios(a, b []float64) []float64 {
	r := make([]float64, len(a))
	for i := range a {
		r[i] = a[i] / b[i]
	}
	return r
}
