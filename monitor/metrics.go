package monitor

import (
	"bytes"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metrics are the numbers of a Prometheus page.
type metrics struct {
	counters
	hasProc    bool
	notProc    bool // a figure of the process is not a number
	pastProc   past
	weir       bool // it is the built-in server's
	cpu        float64
	rss, files float64
	started    float64
	sent, got  float64
	collectors []string // of a node_exporter, that worked
	speeds     map[string]float64
}

func (m *metrics) reset() {
	m.counters.reset()
	*m = metrics{counters: m.counters, collectors: m.collectors[:0]}
}

// needed returns the collectors of a node_exporter from which a sample is made.
func needed() []string {
	return []string{"cpu", "diskstats", "loadavg", "meminfo", "netdev", "netstat", "time"}
}

// query returns what to add to the URL so that a node_exporter reads nothing that is not needed: it is part of the
// load on the watched host.
func (m *metrics) query() string {
	q := url.Values{}
	for _, c := range needed() {
		if slices.Contains(m.collectors, c) {
			q.Add("collect[]", c)
		}
	}
	return q.Encode()
}

// wanted reports whether a line of a page has a metric that parse uses.
func wanted(line []byte) bool {
	if rest, ok := bytes.CutPrefix(line, []byte("# TYPE ")); ok {
		line = rest
	}
	end := bytes.IndexAny(line, "{ \t")
	if end < 0 {
		return false
	}
	return takers()[string(line[:end])] != nil
}

// thin replaces the lines that are not needed by empty lines, so that the line numbers in errors
// stay right, and returns the number of remaining lines.
func thin(b []byte) (out []byte, left int) {
	out = make([]byte, 0, len(b)/4)
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		if wanted(line) {
			out = append(out, line...)
			left++
		}
		out = append(out, '\n')
	}
	return out, left
}

// parse reads a page. Unknown metrics are ignored; a metric whose value is not a plain finite
// number is left out with its device. A page without any known metric is an error.
func (m *metrics) parse(b []byte) error {
	lines, left := thin(b)
	if left == 0 {
		return fmt.Errorf("none of the metrics of a node_exporter, of weir's server or of a process is on the page, which starts %s",
			firstWords(b))
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(lines))
	if err != nil {
		return fmt.Errorf("not a page of Prometheus metrics: %w", err)
	}
	for name, family := range families {
		take := takers()[name]
		if take == nil {
			continue
		}
		for _, sample := range family.GetMetric() {
			l := labels(sample.GetLabel())
			if v, ok := valueOf(sample); ok {
				take(m, l, v)
			} else {
				m.breaks(name, l)
			}
		}
	}
	m.settle()
	if !m.counts() {
		return fmt.Errorf("no counter of a host or of a process is on the page, which starts %s", firstWords(b))
	}
	return nil
}

// counts reports whether the page has a counter of a host or of a process.
func (m *metrics) counts() bool {
	return m.hasProc || m.weir || slices.ContainsFunc(m.cores, func(c coreTime) bool { return !c.broken }) ||
		slices.ContainsFunc(m.nets, func(n netCount) bool { return !n.broken }) ||
		slices.ContainsFunc(m.disks, func(d diskCount) bool { return !d.broken })
}

// breaks notes that a value is not a number.
func (m *metrics) breaks(name string, l labels) {
	switch {
	case strings.HasPrefix(name, "node_cpu_"):
		m.core(l).broken = true
	case strings.HasPrefix(name, "node_disk_"):
		m.disk(l).broken = true
	case name == "node_network_speed_bytes":
	case strings.HasPrefix(name, "node_network_"):
		m.net(l).broken = true
	case strings.HasPrefix(name, "node_memory_"):
		m.notMemory = true
	case strings.HasPrefix(name, "node_netstat_"):
		m.hasTCP, m.notTCP = true, true
	case strings.HasPrefix(name, "process_"), strings.HasPrefix(name, "weir_"):
		m.notProc = true
	}
}

// settle puts the lists in order, for a map brings them in any.
func (m *metrics) settle() {
	slices.SortFunc(m.cores, func(a, b coreTime) int { return a.id - b.id })
	slices.SortFunc(m.disks, func(a, b diskCount) int { return strings.Compare(a.name, b.name) })
	slices.SortFunc(m.nets, func(a, b netCount) int { return strings.Compare(a.name, b.name) })
	m.disks = realDisks(m.disks)
	for i := range m.nets {
		m.nets[i].speed = m.speeds[m.nets[i].name]
	}
	if m.hasMemory = m.memory.Total > 0; m.hasMemory {
		m.memory.Swapped = max(0, m.memory.Swapped)
	}
	if len(m.cores) > 0 {
		m.hasProc = false // the exporter's own process is not a monitored process
	}
}

func valueOf(s *dto.Metric) (float64, bool) {
	var v float64
	switch {
	case s.GetCounter() != nil:
		v = s.GetCounter().GetValue()
	case s.GetGauge() != nil:
		v = s.GetGauge().GetValue()
	case s.GetUntyped() != nil:
		v = s.GetUntyped().GetValue()
	default:
		return 0, false
	}
	const most = 1 << 62 // no byte counter of this world is larger
	return v, v >= 0 && v < most && !math.IsNaN(v)
}

type labels []*dto.LabelPair

func (l labels) get(name string) string {
	for _, p := range l {
		if p.GetName() == name {
			return p.GetValue()
		}
	}
	return ""
}

func (m *metrics) core(l labels) *coreTime {
	id, err := strconv.Atoi(l.get("cpu"))
	if err != nil || id < 0 {
		return &coreTime{}
	}
	for i := range m.cores {
		if m.cores[i].id == id {
			return &m.cores[i]
		}
	}
	m.cores = append(m.cores, coreTime{id: id})
	return &m.cores[len(m.cores)-1]
}

func (m *metrics) disk(l labels) *diskCount {
	name := l.get("device")
	if d := findDisk(m.disks, name, 0); d != nil {
		return d
	}
	m.disks = append(m.disks, diskCount{name: name})
	return &m.disks[len(m.disks)-1]
}

func (m *metrics) net(l labels) *netCount {
	name := l.get("device")
	if n := findNet(m.nets, name, 0); n != nil {
		return n
	}
	m.nets = append(m.nets, netCount{name: name})
	return &m.nets[len(m.nets)-1]
}

// procSince adds to s the usage of the page's own process, if the page contains it. Its metrics do
// not distinguish user from system time: all of it stands as user time.
func (m *metrics) procSince(p *metrics, s *Sample) (*Proc, bool) {
	if !m.hasProc && !m.weir {
		return nil, false
	}
	r := p.pastProc.rises(s.Seconds, m.notProc || p.notProc)
	r.wrong = m.started != p.started || m.rss > mostMemory // it is another process now, or no process is so large
	proc := &Proc{
		Count: 1,
		User:  rose(&r, m.cpu, p.cpu, mostCPU),
		RSS:   int64(m.rss), Files: int(m.files),
		Sent: int64(rose(&r, m.sent, p.sent, mostBytes)), Received: int64(rose(&r, m.got, p.got, mostBytes)),
	}
	m.pastProc = r.past()
	return proc, !r.leftOut(s, LeftOutProcess)
}
