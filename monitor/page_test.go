package monitor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/require"
)

func pageOf(t *testing.T, h Host) *page {
	t.Helper()
	p, err := newPage(h, steadyClock())
	require.NoError(t, err)
	t.Cleanup(p.close)
	return p
}

func serveText(t *testing.T, texts ...string) *httptest.Server {
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, texts[min(n, len(texts)-1)])
		n++
	}))
	t.Cleanup(s.Close)
	return s
}

const hostPage = `# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 100
node_cpu_seconds_total{cpu="0",mode="user"} 50
node_cpu_seconds_total{cpu="0",mode="nice"} 1
node_cpu_seconds_total{cpu="0",mode="iowait"} 3
node_cpu_seconds_total{cpu="10",mode="idle"} 100
node_cpu_seconds_total{cpu="2",mode="steal"} 9
# TYPE node_load1 gauge
node_load1 0.75
node_disk_read_bytes_total{device="sda"} 1000
node_disk_reads_completed_total{device="sda"} 10
node_disk_writes_completed_total{device="sda"} 10
node_disk_io_time_seconds_total{device="sda"} 5
node_disk_read_bytes_total{device="dm-0"} 1000
node_network_receive_bytes_total{device="eth0"} 1e+09
node_network_transmit_bytes_total{device="eth0"} 5000
node_network_receive_packets_total{device="eth0"} 10
node_network_speed_bytes{device="eth0"} 1.25e+08
node_memory_MemTotal_bytes 4.096e+09
node_memory_MemAvailable_bytes 1.024e+09
node_memory_SwapFree_bytes 100
node_memory_SwapTotal_bytes 300
node_netstat_Tcp_RetransSegs 5
node_netstat_Tcp_CurrEstab 2
node_something_unknown{x="y"} NaN
process_cpu_seconds_total 77
`

func TestHostPage(t *testing.T) {
	second := strings.NewReplacer(`mode="idle"} 100`, `mode="idle"} 102`, `mode="user"} 50`, `mode="user"} 52`,
		"1e+09", "1.000004e+09", "RetransSegs 5", "RetransSegs 6", `{device="sda"} 10`+"\n", `{device="sda"} 13`+"\n",
		`time_seconds_total{device="sda"} 5`, `time_seconds_total{device="sda"} 5.5`).Replace(hostPage)
	srv := serveText(t, hostPage, second)
	p := pageOf(t, Host{Name: "far", NodeExporter: srv.URL})
	if s, err := p.look(context.Background()); s != nil || err != nil {
		t.Fatalf("first look: %v, %v", s, err)
	}
	s, err := p.look(context.Background())
	require.NoError(t, err)
	want := &Sample{
		Time: s.Time, Seconds: 2, Cores: 3, Load: 0.75,
		CPU: &CPU{User: 2. / 6, Idle: 4. / 6}, Core: []float64{0.5, 0, 0},
		Memory: &Memory{Total: 4096000000, Available: 1024000000, Swapped: 200},
		Disks:  []Disk{{Name: "sda", Ops: 3, Busy: 0.25}},
		Nets:   []Net{{Name: "eth0", Received: 4000, Speed: 1e9}},
		TCP:    &TCP{Retransmits: 1, Established: 2},
	}
	if diff := cmp.Diff(want, s, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
		t.Error(diff)
	}
}

func TestServerPage(t *testing.T) {
	page := func(start, cpu, sent int) string {
		return fmt.Sprintf("process_start_time_seconds %d\nprocess_cpu_seconds_total %d.5\nprocess_open_fds 12\n"+
			"process_resident_memory_bytes 5e6\nweir_serve_payload_sent_bytes_total %d\nweir_serve_payload_received_bytes_total 7\n",
			start, cpu, sent)
	}
	srv := serveText(t, page(1, 10, 1000), page(1, 12, 5000), page(2, 1, 300), page(2, 1, 350))
	p := pageOf(t, Host{Name: "srv", Role: "server", NodeExporter: srv.URL + "/metrics"})
	var got []Proc
	for range 4 {
		s, err := p.look(context.Background())
		require.NoError(t, err)
		if s != nil {
			got = append(got, s.Procs...)
		}
	}
	want := []Proc{
		{Name: "weir", Role: "server", Count: 1, User: 2, RSS: 5e6, Files: 12, Sent: 4000},
		{Name: "weir", Role: "server", Count: 1, RSS: 5e6, Files: 12, Sent: 50}, // after it was started again
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWrongPages(t *testing.T) {
	for _, c := range []struct{ name, kind, body, want string }{
		{"web page", "text/html; charset=utf-8", "<html><body>Welcome</body></html>", "is not a page of Prometheus metrics but text/html"},
		{"other text", "text/plain", "hello world", "none of the metrics of a node_exporter"},
		{"empty", "text/plain", "", "none of the metrics"},
		{"other metrics", "text/plain", "go_goroutines 5\n", "none of the metrics"},
		{"cut off", "text/plain", "go_goroutines 5\nnode_load1 0.5\nnode_cpu_seconds_total{cpu=\"0", "line 3"},
		{"no number", "text/plain", "node_load1 much\n", "line 1"},
		{"twice", "text/plain", "# TYPE node_load1 gauge\n# TYPE node_load1 counter\n", "line 2"},
		{"only not finite", "text/plain", "node_network_receive_bytes_total{device=\"a\"} +Inf\nnode_load1 -5\n", "no counter"},
		{"too large", "text/plain", strings.Repeat("# aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", (pageLimit>>5)+1), "larger than 16 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				fmt.Fprint(w, c.body)
			}))
			defer srv.Close()
			p := pageOf(t, Host{NodeExporter: srv.URL})
			if s, err := p.look(context.Background()); s != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v", s, err)
			}
		})
	}
}

func TestStatusIsNamedAndSecretsAreNot(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not today", http.StatusServiceUnavailable)
	}))
	defer srv.Close()
	p := pageOf(t, Host{NodeExporter: strings.Replace(srv.URL, "http://", "http://user:hush@", 1)})
	_, err := p.look(context.Background())
	if err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "not today") ||
		strings.Contains(err.Error(), "hush") {
		t.Error(err)
	}
}

func TestBadURL(t *testing.T) {
	for _, bad := range []string{"gftp-1:9100", "ftp://x/", "http://", "://", "/metrics"} {
		if _, err := newPage(Host{Name: "h", NodeExporter: bad}, newClock()); err == nil {
			t.Errorf("%q was taken", bad)
		}
		if _, err := Start(context.Background(), []Host{{Name: "h", NodeExporter: bad}}, Options{}, &keep{}); err == nil {
			t.Errorf("Start took %q", bad)
		}
	}
}

// TestFilterThatIsRefused: an exporter that does not support a collector any more is queried
// without a filter again.
func TestFilterThatIsRefused(t *testing.T) {
	var queries []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RawQuery)
		if r.URL.RawQuery != "" {
			http.Error(w, "missing collector: cpu", http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, "node_load1 1\nnode_scrape_collector_success{collector=\"cpu\"} 1\nnode_scrape_collector_success{collector=\"arp\"} 1\n"+
			"node_network_receive_bytes_total{device=\"eth0\"} 5\n")
	}))
	defer srv.Close()
	p := pageOf(t, Host{NodeExporter: srv.URL})
	for range 3 {
		if _, err := p.look(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"", "collect%5B%5D=cpu", "", ""}, queries); diff != "" {
		t.Error(diff)
	}
}

// program returns the path of a program, or skips the test without it.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("WEIR_REQUIRE") == "all" {
			t.Fatalf("%s is not installed", name)
		}
		t.Skipf("%s is not installed", name)
	}
	return path
}

// freePort returns a port that nothing listens on at the moment.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// started runs a program until the test ends.
func started(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
}

// answers waits until something listens on a port.
func answers(t testing.TB, port int) {
	t.Helper()
	require.Eventually(t, fmt.Sprintf("port %d listens", port), func() bool {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

func TestRealNodeExporter(t *testing.T) {
	t.Parallel()
	exporter := program(t, "prometheus-node-exporter")
	port := freePort(t)
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	started(t, exec.Command(exporter, "--web.listen-address="+addr))
	answers(t, port)
	p := pageOf(t, Host{NodeExporter: "http://" + addr})
	p.clock = newClock()
	l := newLocal(Host{}, Options{}, nil, newClock())
	defer l.close()
	look := func(p probe) *Sample {
		s, err := p.look(context.Background())
		require.NoError(t, err)
		return s
	}
	look(p)
	look(l)
	if q, _ := url.ParseQuery(p.collect); len(q["collect[]"]) != len(needed()) {
		t.Errorf("the query is %q", p.collect)
	}
	size := p.body.Len()
	waited := time.NewTimer(700 * time.Millisecond) // a span that has ticks of every core
	defer waited.Stop()
	<-waited.C
	far, near := look(p), look(l)
	if p.body.Len() >= size {
		t.Errorf("the page with a filter has %d bytes, without %d", p.body.Len(), size)
	}
	if far.Cores != near.Cores || far.CPU == nil || far.Memory.Total != near.Memory.Total || len(far.Core) != far.Cores {
		t.Errorf("exporter %+v, /proc %+v", far, near)
	}
	if len(far.Disks) != len(near.Disks) || far.TCP == nil || len(far.Nets) == 0 || len(far.Procs) != 0 {
		t.Errorf("exporter %+v, /proc %+v", far, near)
	}
	if sum := far.CPU.Busy() + far.CPU.Idle + far.CPU.IOWait; sum < 0.9999 || sum > 1.0001 {
		t.Errorf("the shares add up to %v", sum)
	}
	if far.Seconds < 0.6 || far.Seconds > near.Seconds*1.5 {
		t.Errorf("%v s by the exporter's clock, %v s by ours", far.Seconds, near.Seconds)
	}
}
