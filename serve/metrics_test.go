package serve

import (
	"strings"
	"testing"
	"time"
)

func TestMetrics(t *testing.T) {
	dir := t.TempDir()
	write(t, made(1, 200_000), dir, "f")
	s := start(t, Config{Dir: dir})
	check(t, s, exchange{method: "GET", path: "/f", code: 200})
	check(t, s, exchange{method: "GET", path: "/f", header: map[string]string{"Range": "bytes=0-99"}, code: 206})
	check(t, s, exchange{method: "HEAD", path: "/f", code: 200})
	check(t, s, exchange{method: "GET", path: "/none", code: 404})
	check(t, s, exchange{method: "PUT", path: "/g", body: made(2, 70_000), code: 201})
	check(t, s, exchange{method: "BREW", path: "/f", code: 405})
	check(t, s, exchange{method: "PROPFIND", path: "/", header: map[string]string{"Depth": "1"}, code: 207})
	_, text := do(t, s, exchange{method: "GET", path: "/metrics"})
	for _, line := range []string{
		"weir_serve_payload_sent_bytes_total 200100", "weir_serve_payload_received_bytes_total 70000", "weir_serve_requests_in_flight 1",
		`weir_serve_requests_total{method="GET",code="200"} 1`, `weir_serve_requests_total{method="GET",code="206"} 1`,
		`weir_serve_requests_total{method="GET",code="404"} 1`,
		`weir_serve_requests_total{method="HEAD",code="200"} 1`, `weir_serve_requests_total{method="PUT",code="201"} 1`,
		`weir_serve_requests_total{method="other",code="405"} 1`,
		`weir_serve_request_duration_seconds_count{method="GET"} 3`, `weir_serve_request_duration_seconds_bucket{method="GET",le="+Inf"} 3`,
		"# TYPE weir_serve_request_duration_seconds histogram", "# TYPE process_cpu_seconds_total counter",
	} {
		if !strings.Contains(text, line+"\n") && !strings.HasPrefix(line, "#") || !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

func TestCountingDoesNotAllocate(t *testing.T) {
	m := newMetrics()
	if n := testing.AllocsPerRun(100, func() { m.count("GET", 200, time.Millisecond); m.payloadOut.Add(1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
