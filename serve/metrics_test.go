package serve

import (
	"strings"
	"testing"
	"time"

	"weir/serve/servetest/requests"
)

func TestMetrics(t *testing.T) {
	dir := t.TempDir()
	requests.Write(t, requests.Content(1, 200_000), dir, "f")
	s := start(t, Config{Dir: dir})
	check(t, s, exchange{Method: "GET", Path: "/f", Code: 200})
	check(t, s, exchange{Method: "GET", Path: "/f", Header: map[string]string{"Range": "bytes=0-99"}, Code: 206})
	check(t, s, exchange{Method: "HEAD", Path: "/f", Code: 200})
	check(t, s, exchange{Method: "GET", Path: "/none", Code: 404})
	check(t, s, exchange{Method: "PUT", Path: "/g", Body: requests.Content(2, 70_000), Code: 201})
	check(t, s, exchange{Method: "BREW", Path: "/f", Code: 405})
	check(t, s, exchange{Method: "PROPFIND", Path: "/", Header: map[string]string{"Depth": "1"}, Code: 207})
	_, text := do(t, s, exchange{Method: "GET", Path: "/metrics"})
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
