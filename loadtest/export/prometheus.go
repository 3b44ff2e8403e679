package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"weir/loadtest/results"
)

// A Page serves the current metrics of a run at /metrics. It reads the run directory on request, so
// it has no cost unless it is scraped.
type Page struct {
	server   *http.Server
	listener net.Listener
	served   chan struct{}

	mu       sync.Mutex // guards all below
	follower *results.Follower
	ledger   *ledger
	steps    stepEnds
	found    bool        // the ledger contains the findings
	asked    []time.Time // the times of the last two requests
	again    chan struct{}
}

// Listen opens a page at address: host:port, :port for every address of this machine, or port for 127.0.0.1. It
// responds with 503 until Show.
func Listen(ctx context.Context, address string) (*Page, error) {
	if !strings.Contains(address, ":") {
		address = "127.0.0.1:" + address
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics page: %w", err)
	}
	p := &Page{listener: l, served: make(chan struct{}), again: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", p.metrics)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("weir: metrics of a run are at /metrics\n")) // the client has left
	})
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute, MaxHeaderBytes: 64 << 10}
	go func() {
		defer close(p.served)
		_ = p.server.Serve(l) // Close ends it
	}()
	return p, nil
}

// URL returns the address of the page.
func (p *Page) URL() string { return "http://" + p.listener.Addr().String() + "/metrics" }

// Show serves the run in dir from now on.
func (p *Page) Show(dir string) error {
	f, err := results.Follow(dir)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follower, p.ledger, p.steps, p.found = f, newLedger(f.Run(), nil, time.Time{}), stepEnds{}, false
	return nil
}

// Linger adds the findings and waits until a regular scraper has fetched the end of the run: for
// twice the interval between its last two requests, a minute at most, or until ctx ends. Before it
// waits, it calls notice with the maximum wait.
func (p *Page) Linger(ctx context.Context, find Finder, notice func(time.Duration)) {
	p.mu.Lock()
	if p.ledger != nil && !p.found {
		_ = p.read() // the page itself reports an error
		if f, err := find(p.follower.Run()); err == nil {
			p.ledger.flush()
			p.ledger.findings(f)
			p.found = true
		}
	}
	wait := time.Duration(0)
	if len(p.asked) == 2 {
		wait = min(2*p.asked[1].Sub(p.asked[0])+time.Second, time.Minute)
	}
	select {
	case <-p.again: // an earlier signal
	default:
	}
	p.mu.Unlock()
	if wait == 0 || ctx.Err() != nil {
		return
	}
	notice(wait)
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-p.again:
	case <-t.C:
	case <-ctx.Done():
	}
}

// Close closes the page after the responses in progress.
func (p *Page) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := p.server.Shutdown(ctx)
	if err != nil {
		err = p.server.Close()
	}
	<-p.served
	return err
}

// read reads new lines. The caller holds mu.
func (p *Page) read() error {
	if p.follower == nil {
		return errors.New("the run has not begun yet")
	}
	for {
		moved, err := p.follower.Poll(p.ledger.handlers())
		if err != nil {
			return err
		}
		if !moved {
			if !p.found {
				p.steps.look(p.ledger, p.follower.Run())
			}
			return nil
		}
	}
}

func (p *Page) metrics(w http.ResponseWriter, r *http.Request) {
	format := expfmt.NegotiateAccept(r.Header, expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtText)
	var text bytes.Buffer
	p.mu.Lock()
	err := p.read()
	if err == nil {
		err = p.ledger.text(&text, format)
	}
	over := p.found
	if p.asked = append(p.asked, time.Now()); len(p.asked) > 2 {
		p.asked = p.asked[1:]
	}
	p.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", string(format))
	_, err = w.Write(text.Bytes())
	if err == nil && over {
		select {
		case p.again <- struct{}{}:
		default:
		}
	}
}

// text writes the current values of all series.
func (l *ledger) text(w *bytes.Buffer, format expfmt.Format) error {
	by := map[*Metric][]*series{}
	for _, s := range l.all {
		if s.known {
			by[s.metric] = append(by[s.metric], s)
		}
	}
	enc := expfmt.NewEncoder(w, format)
	for _, m := range l.t.metrics() {
		if len(by[m]) == 0 {
			continue
		}
		if err := enc.Encode(family(m, by[m])); err != nil {
			return err
		}
	}
	if c, ok := enc.(expfmt.Closer); ok {
		return c.Close() // OpenMetrics ends with a terminating line
	}
	return nil
}

// family returns a metric in the form that Prometheus' encoders accept.
func family(m *Metric, all []*series) *dto.MetricFamily {
	kind := map[Type]dto.MetricType{Counter: dto.MetricType_COUNTER, Gauge: dto.MetricType_GAUGE, Histogram: dto.MetricType_HISTOGRAM}[m.Type]
	f := &dto.MetricFamily{Name: &m.Name, Help: &m.Help, Type: &kind}
	for _, s := range all {
		one := &dto.Metric{}
		for i := range s.labels {
			one.Label = append(one.Label, &dto.LabelPair{Name: &s.labels[i].Name, Value: &s.labels[i].Value})
		}
		switch m.Type {
		case Counter:
			one.Counter = &dto.Counter{Value: &s.value}
		case Gauge:
			one.Gauge = &dto.Gauge{Value: &s.value}
		default:
			one.Histogram = histogram(s.values(nil))
		}
		f.Metric = append(f.Metric, one)
	}
	return f
}

// histogram returns the values of a series as a histogram.
func histogram(values []float64) *dto.Histogram {
	n := len(values) - 2 // buckets
	count := uint64(values[n])
	h := &dto.Histogram{SampleCount: &count, SampleSum: &values[n+1]}
	for i, bound := range append(bounds(), math.Inf(1)) {
		upTo := uint64(values[i])
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: &bound, CumulativeCount: &upTo})
	}
	return h
}
