package serve

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// metrics are the counts of a server. A request costs one or two dozen
// nanoseconds here: atomic additions into tables that are there from the start.
type metrics struct {
	started               time.Time
	payloadIn, payloadOut atomic.Int64
	wireIn, wireOut       atomic.Int64
	opened, open          atomic.Int64
	inFlight              atomic.Int64
	requests              [numMethods][500]atomic.Int64 // by method and code-100
	durations             [numMethods]histogram
}

const numMethods = 9

// A histogram counts durations in buckets that grow by powers of two from
// 16 us on; the last has no upper end.
type histogram struct {
	buckets [24]atomic.Int64
	nanos   atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	i := 0
	for limit := firstBucket; i < len(h.buckets)-1 && d > limit; limit *= 2 {
		i++
	}
	h.buckets[i].Add(1)
	h.nanos.Add(int64(d))
}

const firstBucket = 16 * time.Microsecond

func newMetrics() *metrics { return &metrics{started: time.Now()} }

func methodNames() [numMethods]string {
	return [numMethods]string{"GET", "HEAD", "PUT", "DELETE", "PROPFIND", "MKCOL", "MOVE", "COPY", "other"}
}

// methodIndex limits the number of labels that a client can create.
func methodIndex(method string) int {
	switch method {
	case http.MethodGet:
		return 0
	case http.MethodHead:
		return 1
	case http.MethodPut:
		return 2
	case http.MethodDelete:
		return 3
	case "PROPFIND":
		return 4
	case "MKCOL":
		return 5
	case "MOVE":
		return 6
	case "COPY":
		return 7
	}
	return 8
}

// count counts one request that is over.
func (m *metrics) count(method string, code int, d time.Duration) {
	i := methodIndex(method)
	m.requests[i][min(max(code-100, 0), 499)].Add(1)
	m.durations[i].add(d)
}

// serveMetrics handles GET /metrics in Prometheus' text format.
func (s *Server) serveMetrics(r *Request) {
	var b bytes.Buffer
	s.metrics.write(&b)
	s.pages.write(&b)
	h := r.w.Header()
	h.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	if r.Method == http.MethodHead {
		r.w.WriteHeader(http.StatusOK)
		return
	}
	_, _ = r.w.ResponseWriter.Write(b.Bytes()) // not payload; an error cannot be reported
}

func (m *metrics) write(b *bytes.Buffer) {
	one := func(name, kind, help string, v any) { writeMetric(b, name, kind, help, v) }
	one("weir_serve_payload_sent_bytes_total", "counter", "Bytes of files sent, counted as they move.", m.payloadOut.Load())
	one("weir_serve_payload_received_bytes_total", "counter", "Bytes of files received, counted as they move.", m.payloadIn.Load())
	one("weir_serve_wire_sent_bytes_total", "counter", "Bytes written to connections, protocol included.", m.wireOut.Load())
	one("weir_serve_wire_received_bytes_total", "counter", "Bytes read from connections, protocol included.", m.wireIn.Load())
	one("weir_serve_connections_total", "counter", "Connections accepted.", m.opened.Load())
	one("weir_serve_connections", "gauge", "Connections open.", m.open.Load())
	one("weir_serve_requests_in_flight", "gauge", "Requests being answered, this one included.", m.inFlight.Load())
	if user, system, rss, ok := usage(); ok {
		one("process_cpu_seconds_total", "counter", "CPU time of the process, user and system.", (user + system).Seconds())
		one("process_max_resident_memory_bytes", "gauge", "Most memory the process ever had.", rss)
	}
	one("process_start_time_seconds", "gauge", "When the server started, in Unix time.", float64(m.started.UnixMilli())/1000)
	m.writeRequests(b)
	m.writeDurations(b)
}

func writeMetric(b *bytes.Buffer, name, kind, help string, v any) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n%s %v\n", name, help, name, kind, name, v)
}

// write writes the metrics of servers whose pages cost CPU time.
func (p *pageThreads) write(b *bytes.Buffer) {
	if p == nil {
		return
	}
	writeMetric(b, "weir_serve_pages_total", "counter", "Pages served by threads.", p.served.Load())
	writeMetric(b, "weir_serve_pages_waiting", "gauge", "Pages that wait for a thread or are served by one.", p.waiting.Load())
}

func (m *metrics) writeRequests(b *bytes.Buffer) {
	b.WriteString("# HELP weir_serve_requests_total Requests answered.\n# TYPE weir_serve_requests_total counter\n")
	for i, name := range methodNames() {
		for code := range m.requests[i] {
			if n := m.requests[i][code].Load(); n > 0 {
				fmt.Fprintf(b, "weir_serve_requests_total{method=%q,code=\"%d\"} %d\n", name, code+100, n)
			}
		}
	}
}

func (m *metrics) writeDurations(b *bytes.Buffer) {
	const metric = "weir_serve_request_duration_seconds"
	b.WriteString("# HELP " + metric + " Time from a request's head to the end of its answer.\n# TYPE " + metric + " histogram\n")
	for i, name := range methodNames() {
		h := &m.durations[i]
		var counts [len(h.buckets)]int64
		total := int64(0)
		for j := range counts {
			counts[j] = h.buckets[j].Load()
			total += counts[j]
		}
		if total == 0 {
			continue
		}
		sum, limit := int64(0), firstBucket
		for _, n := range counts[:len(counts)-1] {
			sum += n
			fmt.Fprintf(b, "%s_bucket{method=%q,le=\"%g\"} %d\n", metric, name, limit.Seconds(), sum)
			limit *= 2
		}
		fmt.Fprintf(b, "%s_bucket{method=%q,le=\"+Inf\"} %d\n", metric, name, total)
		fmt.Fprintf(b, "%s_sum{method=%q} %g\n", metric, name, time.Duration(h.nanos.Load()).Seconds())
		fmt.Fprintf(b, "%s_count{method=%q} %d\n", metric, name, total)
	}
}

// Payload returns the number of bytes of files that the server has received and sent so far,
// without headers and listings.
func (s *Server) Payload() (in, out int64) {
	return s.metrics.payloadIn.Load(), s.metrics.payloadOut.Load()
}

// usage returns the resources that this process has used so far; rss in bytes.
func usage() (user, system time.Duration, rss int64, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0, 0, false
	}
	rss = int64(u.Maxrss)
	if runtime.GOOS != "darwin" { // elsewhere in KiB
		rss *= 1024
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano()), rss, true
}
