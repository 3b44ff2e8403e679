package export

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// openMetrics writes OpenMetrics text with the time stamps of the run
// (https://prometheus.io/docs/specs/om/open_metrics_spec/), as promtool tsdb
// create-blocks-from openmetrics takes it. The format wants all points of a
// series together, and all series of a metric; the run tells second by second.
// So points go to a file for each metric first, and memory does not grow with
// the run but with its busiest metric.
type openMetrics struct {
	dir   string
	files map[*Metric]*spool
	all   []*series // by number
	err   error
}

// A spool holds the points of a metric: number of the series, time, values.
type spool struct {
	file   *os.File
	out    *bufio.Writer
	values int // of a point
}

func newOpenMetrics() (*openMetrics, error) {
	dir, err := os.MkdirTemp("", "weir-export-")
	return &openMetrics{dir: dir, files: map[*Metric]*spool{}}, err
}

// close removes what was put aside.
func (o *openMetrics) close() error {
	var errs []error
	for _, s := range o.files {
		errs = append(errs, s.file.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(o.dir))...)
}

// point implements sink. Its error is told by write.
func (o *openMetrics) point(p point) {
	if p.gone || o.err != nil {
		return
	}
	s, at := p.series, p.at
	sp := o.files[s.metric]
	if sp == nil {
		if sp, o.err = o.open(s); o.err != nil {
			return
		}
	}
	for len(o.all) <= s.number {
		o.all = append(o.all, nil)
	}
	o.all[s.number] = s
	b := binary.LittleEndian.AppendUint32(nil, uint32(s.number))
	b = binary.LittleEndian.AppendUint64(b, uint64(at))
	if s.spread == nil {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.value))
	} else {
		for _, x := range append(slices.Clone(s.spread.buckets), s.spread.count, s.spread.sum) {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	_, o.err = sp.out.Write(b)
}

func (o *openMetrics) open(s *series) (*spool, error) {
	f, err := os.Create(filepath.Join(o.dir, s.metric.Name))
	if err != nil {
		return nil, err
	}
	sp := &spool{file: f, out: bufio.NewWriterSize(f, 32<<10), values: 1}
	if s.spread != nil {
		sp.values = len(s.spread.buckets) + 2
	}
	o.files[s.metric] = sp
	return sp, nil
}

// write writes all that was told, metric by metric in their order.
func (o *openMetrics) write(w io.Writer, metrics []*Metric) error {
	out := bufio.NewWriterSize(w, 64<<10)
	for _, m := range metrics {
		if sp := o.files[m]; sp != nil && o.err == nil {
			head(out, m)
			o.err = o.metric(out, sp)
		}
	}
	if o.err != nil {
		return fmt.Errorf("export: %w", o.err)
	}
	_, _ = out.WriteString("# EOF\n") // Flush has its error
	return out.Flush()
}

// head writes what a metric is.
func head(out *bufio.Writer, m *Metric) {
	name := m.Name
	if m.Type == Counter {
		name = strings.TrimSuffix(name, "_total")
	}
	_, _ = fmt.Fprintf(out, "# TYPE %s %s\n", name, m.Type) // Flush has its error
	for _, unit := range []string{"bytes_per_second", "seconds", "bytes", "ratio"} {
		if strings.HasSuffix(name, "_"+unit) {
			_, _ = fmt.Fprintf(out, "# UNIT %s %s\n", name, unit)
			break
		}
	}
	_, _ = fmt.Fprintf(out, "# HELP %s %s\n", name, quoted(m.Help))
}

// A stored is a point that is read back.
type stored struct {
	number uint32
	at     int64
	from   int // of its values in the file
}

// metric writes the points of one spool, series by series.
func (o *openMetrics) metric(out *bufio.Writer, sp *spool) error {
	if err := sp.out.Flush(); err != nil {
		return err
	}
	text, err := os.ReadFile(sp.file.Name())
	if err != nil {
		return err
	}
	size := 12 + 8*sp.values
	points := make([]stored, 0, len(text)/size)
	for from := 0; from < len(text); from += size {
		points = append(points, stored{binary.LittleEndian.Uint32(text[from:]), int64(binary.LittleEndian.Uint64(text[from+4:])), from + 12})
	}
	slices.SortStableFunc(points, func(a, b stored) int { return cmp.Compare(a.number, b.number) })
	var lines pointLines
	last := uint32(math.MaxUint32)
	for _, p := range points {
		if p.number != last {
			lines, last = newPointLines(o.all[p.number]), p.number
		}
		lines.write(out, p.at, text[p.from:])
	}
	return nil
}

// pointLines writes points of one series.
type pointLines struct {
	names   []string // each with its labels
	buckets int      // of a histogram
	line    []byte
}

func newPointLines(s *series) pointLines {
	if s.spread == nil {
		return pointLines{names: []string{s.metric.Name + labelText(s.labels)}}
	}
	p := pointLines{buckets: len(s.spread.buckets)}
	for _, b := range append(bounds(), math.Inf(1)) {
		p.names = append(p.names, s.metric.Name+"_bucket"+labelText(append(slices.Clone(s.labels), Label{"le", leText(b)})))
	}
	p.names = append(p.names, s.metric.Name+"_count"+labelText(s.labels), s.metric.Name+"_sum"+labelText(s.labels))
	return p
}

func (p *pointLines) write(out *bufio.Writer, at int64, values []byte) {
	below := 0.0
	for i, name := range p.names {
		x := math.Float64frombits(binary.LittleEndian.Uint64(values[8*i:]))
		if i < p.buckets {
			below += x
			x = below
		}
		p.line = append(append(p.line[:0], name...), ' ')
		p.line = strconv.AppendFloat(p.line, x, 'g', -1, 64)
		p.line = append(p.line, ' ')
		p.line = strconv.AppendFloat(p.line, float64(at)/1000, 'f', 3, 64)
		_, _ = out.Write(append(p.line, '\n')) // Flush has its error
	}
}

// labelText writes labels as text formats have them.
func labelText(labels []Label) string {
	parts := make([]string, len(labels))
	for i, l := range labels {
		parts[i] = l.Name + `="` + quoted(l.Value) + `"`
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// quoted escapes what text formats cannot have as it is.
func quoted(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
}
