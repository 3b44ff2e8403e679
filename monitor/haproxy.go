package monitor

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// haproxy reads the statistics of HAProxy, as CSV: over its socket, or from its statistics page.
type haproxy struct {
	network, address string // of the socket
	page             *page  // instead of a socket
}

func newHAProxy(from string) (*haproxy, error) {
	switch {
	case !strings.Contains(from, "://"):
		return &haproxy{network: map[bool]string{true: "unix", false: "tcp"}[strings.HasPrefix(from, "/")], address: from}, nil
	}
	u, err := url.Parse(from)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("balancer: haproxy %q is not a URL such as http://lb:8404/stats", from)
	}
	// The page's options follow a semicolon; csv is one of them.
	if !slices.Contains(strings.Split(u.Path, ";"), "csv") {
		u.Path += ";csv"
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1}
	return &haproxy{page: &page{url: u, transport: transport, client: &http.Client{Transport: transport}}}, nil
}

func (h *haproxy) close() {
	if h.page != nil {
		h.page.close()
	}
}

func (h *haproxy) ask(ctx context.Context) (*balancing, error) {
	if h.page != nil {
		if err := h.page.get(ctx, ""); err != nil {
			return nil, err
		}
		return parseHAProxy(h.page.body.Bytes())
	}
	b, err := h.question(ctx)
	if err != nil {
		return nil, fmt.Errorf("HAProxy's socket %s: %w", h.address, err)
	}
	return parseHAProxy(b)
}

// question requests the servers (type 4) of all proxies; HAProxy responds and closes the
// connection.
func (h *haproxy) question(ctx context.Context) ([]byte, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, h.network, h.address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if end, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(end)
	}
	if _, err := conn.Write([]byte("show stat -1 4 -1\n")); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(conn, pageLimit))
	if err == nil && len(b) == 0 {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// The type of a line of HAProxy's statistics that is a server.
const typeServer = "2"

// parseHAProxy reads statistics in the format of HAProxy 1.4 and later (management guide, section
// 9.1): a header that begins with "# pxname", and a line each for frontends, backends and servers.
// Missing columns are zero; columns of newer versions are ignored.
func parseHAProxy(b []byte) (*balancing, error) {
	b = bytes.TrimSpace(b)
	if !bytes.HasPrefix(b, []byte("# pxname,")) {
		return nil, fmt.Errorf("this is not HAProxy's statistics, it starts %s", firstWords(b))
	}
	r := csv.NewReader(bytes.NewReader(b))
	r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = true, -1, true
	header, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("HAProxy's statistics: %w", err)
	}
	column := map[string]int{}
	for i, name := range header {
		column[strings.TrimPrefix(name, "# ")] = i
	}
	if _, ok := column["type"]; !ok {
		return nil, errors.New("HAProxy's statistics have no column type")
	}
	out := &balancing{kind: HAProxy}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("HAProxy's statistics: %w", err)
		}
		line := haproxyLine{column, row}
		if line.text("type") != typeServer || len(out.servers) >= mostBalanced {
			continue
		}
		out.add(line.server())
	}
	if len(out.servers) == 0 {
		return nil, errors.New("HAProxy has no server")
	}
	return out, nil
}

// add appends a server and adds its counters to the sums.
func (b *balancing) add(s Balanced) {
	b.servers = append(b.servers, s)
	b.connected, b.received, b.sent = b.connected+s.Connected, b.received+s.Received, b.sent+s.Sent
}

type haproxyLine struct {
	column map[string]int
	row    []string
}

func (l haproxyLine) text(name string) string {
	if i, ok := l.column[name]; ok && i < len(l.row) {
		return strings.ToValidUTF8(l.row[i], "\uFFFD")
	}
	return ""
}

// number returns a figure; 0 if the column is missing or its value is implausible.
func (l haproxyLine) number(name string) int64 {
	n, err := strconv.ParseInt(l.text(name), 10, 64)
	if err != nil || n < 0 || n > 1<<60 {
		return 0
	}
	return n
}

func (l haproxyLine) small(name string) int { return int(min(l.number(name), 1<<31-1)) }

func (l haproxyLine) server() Balanced {
	return Balanced{
		Name: l.text("svname"), Service: l.text("pxname"), Address: l.text("addr"), Status: l.text("status"), Weight: l.small("weight"),
		Connections: l.small("scur"), Limit: l.small("slim"), Queue: l.small("qcur"),
		Connected: l.number("stot"), Received: l.number("bin"), Sent: l.number("bout"), Errors: l.number("econ") + l.number("eresp"),
	}
}
