package monitor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"weir/internal/redact"
)

// page is the probe of a host that has a Prometheus page: a node_exporter, the built-in server, or any program with
// the usual process_ metrics.
type page struct {
	url       *url.URL
	name      string // of the processes
	role      Role
	client    *http.Client
	transport *http.Transport
	clock     func() moment
	body      bytes.Buffer
	collect   string             // query that requests only the needed metrics from a node_exporter
	whole     bool               // such a query did not work
	speeds    map[string]float64 // of interfaces; only in a whole page
	now, last *metrics
	primed    bool
}

// pageLimit bounds a page. The largest of a node_exporter are below 2 MiB.
const pageLimit = 16 << 20

func newPage(h Host, clock func() moment) (*page, error) {
	u, err := url.Parse(h.NodeExporter)
	if err != nil {
		return nil, fmt.Errorf("host %s: node_exporter: %w", h.Name, err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("host %s: node_exporter %q is not a URL such as http://%s:9100/metrics", h.Name, redact.URL(u.String()), h.Name)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/metrics"
	}
	p := &page{url: u, role: h.Role, clock: clock, now: &metrics{}, last: &metrics{}}
	if len(h.Processes) > 0 {
		p.name = h.Processes[0]
	}
	if p.role == RoleBoth || p.role == "" {
		p.role = RoleServer
	}
	p.transport = &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DisableCompression:  true, // it would cost the watched host CPU time
		MaxIdleConnsPerHost: 1,
	}
	p.client = &http.Client{Transport: p.transport}
	return p, nil
}

func (p *page) close() { p.transport.CloseIdleConnections() }

func (p *page) look(ctx context.Context) (*Sample, error) {
	p.now.reset()
	p.now.speeds = p.speeds
	before := p.clock()
	if err := p.fetch(ctx); err != nil {
		return nil, err
	}
	p.now.at = p.clock()
	p.now.at.mono = (before.mono + p.now.at.mono) / 2 // somewhere in between its counters were read
	if err := p.now.parse(p.body.Bytes()); err != nil {
		return nil, fmt.Errorf("%s: %w", redact.URL(p.url.String()), err)
	}
	p.speeds = p.now.speeds
	if p.collect == "" && !p.whole {
		p.collect = p.now.query()
	}
	var s *Sample
	if p.primed {
		s = p.now.since(&p.last.counters)
		if proc, ok := p.now.procSince(p.last, s); ok {
			proc.Name, proc.Role = p.procName(), p.role
			s.Procs = []Proc{*proc}
		}
	}
	p.last, p.now, p.primed = p.now, p.last, true
	return s, nil
}

func (p *page) procName() string {
	switch {
	case p.name != "":
		return p.name
	case p.now.weir:
		return "weir"
	}
	return p.url.Host
}

// fetch gets the page. A node_exporter that does not support a requested collector is queried for
// the whole page from then on.
func (p *page) fetch(ctx context.Context) error {
	err := p.get(ctx, p.collect)
	var refused *statusError
	if p.collect != "" && errors.As(err, &refused) && refused.code/100 == 4 {
		p.collect, p.whole = "", true
		err = p.get(ctx, "")
	}
	return err
}

// A statusError is an HTTP response without a page.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

func (p *page) get(ctx context.Context, query string) error {
	u := *p.url
	if query != "" {
		if u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += query
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	resp, err := p.client.Do(req)
	if err != nil {
		return redact.Error(err)
	}
	defer func() { _ = resp.Body.Close() }()
	p.body.Reset()
	n, err := p.body.ReadFrom(io.LimitReader(resp.Body, pageLimit+1))
	if resp.StatusCode != http.StatusOK {
		return &statusError{resp.StatusCode, fmt.Sprintf("%s answers %s: %s", redact.URL(p.url.String()), resp.Status,
			firstWords(p.body.Bytes()))}
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", redact.URL(p.url.String()), err)
	}
	if n > pageLimit {
		return fmt.Errorf("%s: the page is larger than %d MiB", redact.URL(p.url.String()), pageLimit>>20)
	}
	if kind := resp.Header.Get("Content-Type"); strings.Contains(kind, "html") || strings.Contains(kind, "json") {
		return fmt.Errorf("%s is not a page of Prometheus metrics but %s: %s", redact.URL(p.url.String()), kind, firstWords(p.body.Bytes()))
	}
	return nil
}

// firstWords quotes the start of a body in which something else was expected.
func firstWords(b []byte) string {
	b = bytes.TrimSpace(b)
	cut := b[:min(len(b), 60)]
	return fmt.Sprintf("%q", cut)
}
