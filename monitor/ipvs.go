package monitor

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// ipvs reads the statistics of the kernel's balancer (LVS).
type ipvs struct {
	dir     string // /proc/net
	program string // ipvsadm; "" once it was seen that it cannot be run
}

func (v *ipvs) ask(ctx context.Context) (*balancing, error) {
	table, err := os.ReadFile(v.dir + "/ip_vs")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("this machine's kernel has no IPVS (no /proc/net/ip_vs): name the machine that balances by the URL of " +
			"its node_exporter")
	}
	if err != nil {
		return nil, err
	}
	b, err := parseIPVS(table)
	if err != nil {
		return nil, err
	}
	if stats, err := os.ReadFile(v.dir + "/ip_vs_stats"); err == nil {
		if err := b.totals(stats); err != nil {
			return nil, err
		}
	}
	if v.program != "" {
		out, err := exec.CommandContext(ctx, v.program, "-Ln", "--stats", "--exact").Output()
		if err != nil { // not there, or not root: the table is sufficient
			v.program = ""
			return b, nil
		}
		b.bytesOf(out)
	}
	return b, nil
}

// parseIPVS reads /proc/net/ip_vs, as ip_vs_info_seq_show of the kernel's
// net/netfilter/ipvs/ip_vs_ctl.c writes it: a line for each virtual service (protocol, address and
// port in hexadecimal digits, scheduler, flags; or FWM and a firewall mark), and below it a line
// that begins with -> for each server (address and port, way of forwarding, weight, active and
// inactive connections).
func parseIPVS(b []byte) (*balancing, error) {
	if !bytes.HasPrefix(b, []byte("IP Virtual Server version ")) {
		return nil, fmt.Errorf("/proc/net/ip_vs: this is not the kernel's table, it starts %s", firstWords(b))
	}
	out := &balancing{kind: IPVS}
	service := ""
	_, b = cutLine(b)
	for line := range bytes.SplitSeq(b, []byte{'\n'}) {
		f := strings.Fields(string(line))
		switch {
		case len(f) < 2 || f[0] == "Prot" || f[0] == "->" && strings.HasPrefix(f[1], "RemoteAddress"):
		case f[0] != "->":
			service = f[0] + " " + f[1] // FWM and its mark
			if a, err := hexAddress(f[1]); err == nil {
				service = a
			}
		case len(f) < 6 || service == "":
			return nil, fmt.Errorf("/proc/net/ip_vs: %.80q is not a server of a service", line)
		case len(out.servers) < mostBalanced:
			s, err := realServer(f, service)
			if err != nil {
				return nil, fmt.Errorf("/proc/net/ip_vs: %w", err)
			}
			out.servers = append(out.servers, s)
		}
	}
	return out, nil
}

// realServer reads the words of a line: -> ADDRESS:PORT FORWARD WEIGHT ACTIVE INACTIVE.
func realServer(f []string, service string) (s Balanced, err error) {
	if s.Address, err = hexAddress(f[1]); err != nil {
		return s, err
	}
	s.Name, s.Service = s.Address, service
	for i, to := range []*int{3: &s.Weight, 4: &s.Connections} {
		if to == nil {
			continue
		}
		n, err := strconv.ParseUint(f[i], 10, 31)
		if err != nil {
			return s, fmt.Errorf("%q is not a number", f[i])
		}
		*to = int(n)
	}
	return s, nil
}

// hexAddress reads C0A80016:0CEA and [2001:0db8:...:0001]:0050.
func hexAddress(s string) (string, error) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return "", fmt.Errorf("%q is not an address and port", s)
	}
	port, err := strconv.ParseUint(s[i+1:], 16, 16)
	if err != nil {
		return "", fmt.Errorf("%q is not a port", s[i+1:])
	}
	var addr netip.Addr
	if host := s[:i]; strings.HasPrefix(host, "[") {
		addr, err = netip.ParseAddr(strings.Trim(host, "[]"))
	} else if raw, bad := hex.DecodeString(host); bad != nil || len(raw) != 4 {
		err = fmt.Errorf("%q is not an IPv4 address", host)
	} else {
		addr = netip.AddrFrom4([4]byte(raw))
	}
	if err != nil {
		return "", err
	}
	return netip.AddrPortFrom(addr, uint16(port)).String(), nil
}

// totals reads /proc/net/ip_vs_stats (ip_vs_stats_show, the same file): two lines of header, and in hexadecimal
// digits the connections, the packets in and out, and the bytes in and out since IPVS was loaded. The first three
// wrap at 2^32 on kernels before 4.0: that second is left out.
func (b *balancing) totals(text []byte) error {
	_, text = cutLine(text)
	_, text = cutLine(text)
	line, _ := cutLine(text)
	f := strings.Fields(string(line))
	if len(f) < 5 {
		return fmt.Errorf("/proc/net/ip_vs_stats: %.80q are not five numbers", line)
	}
	for i, to := range []*int64{0: &b.connected, 3: &b.received, 4: &b.sent} {
		if to == nil {
			continue
		}
		n, err := strconv.ParseUint(f[i], 16, 63)
		if err != nil {
			return fmt.Errorf("/proc/net/ip_vs_stats: %q is not a number", f[i])
		}
		*to = int64(n)
	}
	return nil
}

// bytesOf reads the counters of each server from the output of `ipvsadm -Ln --stats --exact`: lines
// that begin with -> and end in connections, packets in and out, bytes in and out. Other lines are
// ignored.
func (b *balancing) bytesOf(text []byte) {
	service := ""
	for line := range bytes.SplitSeq(text, []byte{'\n'}) {
		f := strings.Fields(string(line))
		if len(f) == 7 && f[0] != "->" && f[0] != "Prot" {
			service = f[1]
			if f[0] == "FWM" {
				service = f[0] + " " + f[1]
			}
		}
		if len(f) != 7 || f[0] != "->" {
			continue
		}
		s := find(b.servers, &Balanced{Name: f[1], Service: service}, len(b.servers))
		var conns, in, out int64
		if s != nil && decimal(f[2], &conns) && decimal(f[5], &in) && decimal(f[6], &out) {
			s.Connected, s.Received, s.Sent = conns, in, out
		}
	}
}

func decimal(text string, to *int64) (ok bool) {
	*to, ok = number([]byte(text))
	return ok
}

// ipvsPage reads the IPVS metrics of the node_exporter on the balancing machine.
type ipvsPage struct{ page *page }

func (v *ipvsPage) ask(ctx context.Context) (*balancing, error) {
	if err := v.page.get(ctx, "collect[]=ipvs"); err != nil {
		return nil, err
	}
	return parseIPVSPage(v.page.body.Bytes())
}

// parseIPVSPage reads the metrics of node_exporter's collector ipvs.
func parseIPVSPage(b []byte) (*balancing, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("not a page of Prometheus metrics: %w", err)
	}
	out := &balancing{kind: IPVS}
	for name, to := range map[string]*int64{
		"node_ipvs_connections_total": &out.connected, "node_ipvs_incoming_bytes_total": &out.received,
		"node_ipvs_outgoing_bytes_total": &out.sent,
	} {
		for _, m := range families[name].GetMetric() {
			if v, ok := valueOf(m); ok {
				*to = int64(v)
			}
		}
	}
	weights := families["node_ipvs_backend_weight"].GetMetric()
	for i, m := range families["node_ipvs_backend_connections_active"].GetMetric() {
		l := labels(m.GetLabel())
		s := Balanced{Address: joined(l, "remote"), Service: joined(l, "local")}
		if mark := l.get("local_mark"); mark != "" {
			s.Service = "FWM " + mark
		}
		if s.Name = s.Address; len(out.servers) >= mostBalanced {
			break
		}
		if v, ok := valueOf(m); ok {
			s.Connections = int(min(v, 1<<31-1))
		}
		if i < len(weights) { // in the same order: they have the same labels
			if v, ok := valueOf(weights[i]); ok && joined(weights[i].GetLabel(), "remote") == s.Address {
				s.Weight = int(min(v, 1<<31-1))
			}
		}
		out.servers = append(out.servers, s)
	}
	if len(out.servers) == 0 {
		return nil, fmt.Errorf("the page has no server of IPVS (node_ipvs_backend_connections_active), it starts %s", firstWords(b))
	}
	return out, nil
}

// joined returns host:port of two labels.
func joined(l labels, of string) string {
	host, port := l.get(of+"_address"), l.get(of+"_port")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return strings.ToValidUTF8(host+":"+port, "\uFFFD")
}
