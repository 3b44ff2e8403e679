package monitor

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
)

// hostMetrics returns the metrics of a host with one core at look n, with two seconds from one look
// to the next.
func hostMetrics(n float64) map[string]string {
	all := map[string]string{}
	for metric, v := range map[string]struct{ start, rise float64 }{
		`node_cpu_seconds_total{cpu="0",mode="idle"}`:            {90000, 1},
		`node_cpu_seconds_total{cpu="0",mode="user"}`:            {5000, 1},
		`node_disk_read_bytes_total{device="sda"}`:               {4e9, 600},
		`node_disk_reads_completed_total{device="sda"}`:          {1e5, 1},
		`node_disk_io_time_seconds_total{device="sda"}`:          {700, 1},
		`node_disk_io_time_weighted_seconds_total{device="sda"}`: {900, 1},
		`node_network_receive_bytes_total{device="eth0"}`:        {4693724000, 50},
		`node_network_transmit_bytes_total{device="eth0"}`:       {2693724000, 50},
		`node_network_receive_drop_total{device="eth0"}`:         {5, 0},
		`node_network_speed_bytes{device="eth0"}`:                {1.25e9, 0},
		`node_network_receive_bytes_total{device="eth1"}`:        {4693724000, 70}, // of unknown speed
		`node_memory_MemTotal_bytes`:                             {4e9, 0},
		`node_memory_MemAvailable_bytes`:                         {2e9, 0},
		`node_netstat_Tcp_RetransSegs`:                           {7000, 1},
		`node_netstat_TcpExt_ListenDrops`:                        {3, 0},
	} {
		all[metric] = strconv.FormatFloat(v.start+n*v.rise, 'g', -1, 64)
	}
	return all
}

// scraped returns the probe of a server whose page has the metrics that text returns at each look.
func scraped(t *testing.T, text func() map[string]string) *page {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for metric, value := range text() {
			fmt.Fprintf(w, "%s %s\n", metric, value)
		}
	}))
	t.Cleanup(srv.Close)
	return pageOf(t, Host{Name: "far", Role: "server", NodeExporter: srv.URL})
}

// parts returns the parts of a sample, with bytes of devices and CPU time of processes.
func parts(s *Sample) (all []string) {
	for name, has := range map[string]bool{"CPU": s.CPU != nil, "TCP": s.TCP != nil, "memory": s.Memory != nil} {
		if has {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	for _, d := range s.Disks {
		all = append(all, fmt.Sprintf("disk %s %.0f", d.Name, d.Read))
	}
	for _, n := range s.Nets {
		all = append(all, fmt.Sprintf("interface %s %d", n.Name, n.Received))
	}
	for _, p := range s.Procs {
		all = append(all, fmt.Sprintf("process %g %d", p.User, p.Sent))
	}
	return all
}

// TestSecondsThatCannotBe: one counter is wrong in one scrape, or in two. Only its device is left
// out, until the counter is right again, and no second contains counts of an earlier second.
func TestSecondsThatCannotBe(t *testing.T) {
	whole := []string{"CPU", "TCP", "memory", "disk sda 300", "interface eth0 50", "interface eth1 70"}
	for metric, what := range map[string]string{
		`node_cpu_seconds_total{cpu="0",mode="idle"}`:            "CPU",
		`node_cpu_seconds_total{cpu="0",mode="user"}`:            "CPU",
		`node_disk_read_bytes_total{device="sda"}`:               "disk sda",
		`node_disk_reads_completed_total{device="sda"}`:          "disk sda",
		`node_disk_io_time_seconds_total{device="sda"}`:          "disk sda",
		`node_disk_io_time_weighted_seconds_total{device="sda"}`: "disk sda",
		`node_network_receive_bytes_total{device="eth0"}`:        "interface eth0",
		`node_network_receive_drop_total{device="eth0"}`:         "interface eth0",
		`node_network_receive_bytes_total{device="eth1"}`:        "interface eth1",
		`node_memory_MemAvailable_bytes`:                         "memory",
		`node_netstat_Tcp_RetransSegs`:                           "TCP",
	} {
		for _, wrong := range []string{"0", "NaN", "+Inf", "-1", "1.5e+18"} {
			for times := 1; times <= 2; times++ {
				if what == "memory" && wrong == "0" {
					continue // so it can be
				}
				t.Run(fmt.Sprint(metric, " ", wrong, " ", times), func(t *testing.T) {
					n := -1
					p := scraped(t, func() map[string]string {
						n++
						all := hostMetrics(float64(n))
						if n > 1 && n <= 1+times {
							all[metric] = wrong
						}
						return all
					})
					for n < 6 {
						s, err := p.look(t.Context())
						require.NoError(t, err)
						if s == nil {
							continue
						}
						seen := parts(s)
						lacks := slices.DeleteFunc(slices.Clone(whole), func(part string) bool { return slices.Contains(seen, part) })
						if more := len(seen) + len(lacks) - len(whole); more > 0 && (n != 3 || times != 2) {
							t.Errorf("look %d: %q", n, seen)
						}
						switch bad := n > 1 && n <= 1+times; {
						case len(lacks) == 0 && !bad && s.LeftOut == nil:
						case len(lacks) == 1 && strings.HasPrefix(lacks[0], what) && cmp.Equal(s.LeftOut, []string{what}) && (bad || n == 2+times):
						case n == 3 && times == 2 && (wrong == "0" && !strings.Contains(metric, "bytes") || wrong == "1.5e+18"):
							// it agrees with the wrong one before
						default:
							t.Errorf("look %d has %q, leaves out %q", n, seen, s.LeftOut)
						}
					}
				})
			}
		}
	}
}

// TestFiguresThatCannotBe: gauges of the size of a wrong counter make no figures either.
func TestFiguresThatCannotBe(t *testing.T) {
	for metric, what := range map[string]string{
		"node_memory_MemTotal_bytes": "memory", "node_netstat_Tcp_CurrEstab": "TCP", "process_resident_memory_bytes": "process",
		`node_network_speed_bytes{device="eth0"}`: "", "node_load1": "",
	} {
		n := -1
		p := scraped(t, func() map[string]string {
			n++
			all := hostMetrics(float64(n))
			all["process_cpu_seconds_total"] = fmt.Sprint(5 + n)
			if what == "process" {
				maps.DeleteFunc(all, func(metric, _ string) bool { return strings.HasPrefix(metric, "node_cpu") })
			}
			if n == 1 {
				all[metric] = "1.5e+18"
			}
			return all
		})
		_, err := p.look(t.Context())
		require.NoError(t, err)
		s, err := p.look(t.Context())
		require.NoError(t, err)
		if got := strings.Join(s.LeftOut, " "); got != what || s.Load > mostLoad || len(s.Nets) < 2 || s.Nets[0].Speed != 1e10 {
			t.Errorf("%s: left out %q, load %g, %+v", metric, got, s.Load, s.Nets)
		}
	}
}

// TestAllCountersAreZero: the page of a host, or of a process, has only zeros in two scrapes.
func TestAllCountersAreZero(t *testing.T) {
	n := -1
	process := func(metrics map[string]string) map[string]string {
		maps.DeleteFunc(metrics, func(metric, _ string) bool { return strings.HasPrefix(metric, "node_cpu") })
		metrics["process_cpu_seconds_total"] = fmt.Sprint(5000 + n)
		metrics["process_start_time_seconds"] = "1e9"
		metrics["weir_serve_payload_sent_bytes_total"] = fmt.Sprint(4693724000 + 90*n)
		return metrics
	}
	for name, text := range map[string]func(map[string]string) map[string]string{
		"host": func(m map[string]string) map[string]string { return m }, "process": process,
	} {
		n = -1
		p := scraped(t, func() map[string]string {
			n++
			all := text(hostMetrics(float64(n)))
			for metric := range all {
				if (n == 2 || n == 3) && !strings.Contains(metric, "memory") && !strings.Contains(metric, "speed") {
					all[metric] = "0"
				}
			}
			return all
		})
		want := []string{"CPU", "TCP", "memory", "disk sda 300", "interface eth0 50", "interface eth1 70"}
		left := []string{"CPU", "disk sda", "interface eth0", "interface eth1", "TCP"}
		if name == "process" {
			want = append(want[1:], "process 1 90")
			left = append(left[1:], "process")
		}
		for n < 6 {
			s, err := p.look(t.Context())
			require.NoError(t, err)
			switch {
			case n == 2, n == 4:
				if diff := cmp.Diff(left, s.LeftOut) + cmp.Diff([]string{"memory"}, parts(s)); diff != "" {
					t.Errorf("%s, look %d: %s", name, n, diff)
				}
			case n == 3: // the CPU's shares are of no time then
				others := slices.DeleteFunc(slices.Clone(left), func(l string) bool { return l == "CPU" })
				if got := parts(s); len(got) != 1 || !cmp.Equal(s.LeftOut, others) {
					t.Errorf("%s, look 3: %q, left out %q", name, got, s.LeftOut)
				}
			case n != 0:
				if diff := cmp.Diff(want, parts(s)); diff != "" || s.LeftOut != nil {
					t.Errorf("%s, look %d: %s, left out %q", name, n, diff, s.LeftOut)
				}
			}
		}
	}
}

// TestFasterThanItsSpeed: a device that is always faster than its reported speed has another speed,
// as the virtual devices of containers do.
func TestFasterThanItsSpeed(t *testing.T) {
	last := nic("eth0", 1, 1, 1, 1, 0, 1e9)
	for n := range 6 {
		now := nic("eth0", last.received+5e9, 1, 1, 1, 0, 1e9)
		s := (&counters{at: at(float64(n + 1)), nets: []netCount{now}}).since(&counters{at: at(float64(n)), nets: []netCount{last}})
		if n < fasterThanSpeed && (len(s.Nets) > 0 || len(s.LeftOut) != 1) || n >= fasterThanSpeed && (len(s.Nets) != 1 || s.Nets[0].Speed != 0) {
			t.Errorf("second %d: %+v, left out %q", n, s.Nets, s.LeftOut)
		}
		c := &counters{at: at(float64(n + 1)), nets: []netCount{now}}
		c.since(&counters{at: at(float64(n)), nets: []netCount{last}})
		last = c.nets[0]
	}
}

// TestServersThatCount: of a server and a balancer the second in which a counter falls is left out, and that in which it is back.
func TestServersThatCount(t *testing.T) {
	for _, wrong := range []int64{0, 1.5e18} {
		r, _ := listener(t)
		n := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			value := 4693724000 + 90*int64(n)
			if n == 2 {
				value = wrong
			}
			fmt.Fprintf(w, "# pxname,svname,type,stot,bin\nb,a,2,%d,%d\nb,c,2,%d,5\n", 100+n, value, 50+n)
		}))
		defer srv.Close()
		b, err := newBalancer(BalancerConfig{HAProxy: srv.URL}, steadyClock())
		require.NoError(t, err)
		defer b.close()
		for n < 6 {
			value := 4693724000 + 90*int64(n)
			if n == 2 {
				value = wrong
			}
			server := r.take(packet("a:1", 7, 100, int64(200+n), value), netip.MustParseAddr("203.0.113.5"), at(float64(n)))
			balancer, err := b.look(t.Context())
			require.NoError(t, err)
			switch {
			case n == 0:
			case n == 2, n == 3:
				if server.Service != nil || !cmp.Equal(server.LeftOut, []string{LeftOutService}) || server.Seconds != 0 ||
					balancer.Balancer != nil || !cmp.Equal(balancer.LeftOut, []string{LeftOutBalancer}) || balancer.Seconds != 0 {
					t.Errorf("%d at look %d: %+v, %+v", wrong, n, server, balancer)
				}
			case server.Service == nil || server.Service.Sent != 90 || balancer.Balancer == nil || balancer.Balancer.Servers[0].Received != 90:
				t.Errorf("%d at look %d: %+v, %+v", wrong, n, server, balancer)
			}
			n++
		}
	}
}
