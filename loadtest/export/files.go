package export

import (
	"bufio"
	"cmp"
	"context"
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
	"time"

	"weir/internal/pause"
	"weir/loadtest/results"
)

// OpenMetrics writes the run in dir as OpenMetrics text with timestamps, which promtool tsdb
// create-blocks-from openmetrics converts to blocks of Prometheus. This is the way to import runs
// that are older than a server accepts.
func OpenMetrics(w io.Writer, dir string, find Finder) (err error) {
	out, err := newOpenMetrics()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.close()) }()
	f, err := results.Follow(dir)
	if err != nil {
		return err
	}
	l := newLedger(f.Run(), out, time.Time{})
	if err := finish(f, l, find); err != nil {
		return err
	}
	return out.write(w, l.t.metrics())
}

// Lines writes the run in dir as lines of InfluxDB's line protocol. With follow it continues until the run is over or
// ctx ends.
func Lines(ctx context.Context, w io.Writer, dir string, follow bool, find Finder) error {
	f, err := results.Follow(dir)
	if err != nil {
		return err
	}
	enc := newInflux(64 << 10)
	l := newLedger(f.Run(), enc, time.Time{})
	for {
		moved, err := f.Poll(l.handlers())
		if err := errors.Join(write(w, enc.flush()), err); err != nil {
			return err
		}
		switch {
		case moved:
		case f.Over() || !follow:
			if err := finish(f, l, find); err != nil {
				return err
			}
			return write(w, enc.flush())
		case !pause.For(ctx, time.Second):
			return ctx.Err()
		}
	}
}

// Wait waits until no process writes the run in dir. It returns false if ctx ended first.
func Wait(ctx context.Context, dir string) (bool, error) {
	f, err := results.Follow(dir)
	if err != nil {
		return false, err
	}
	for !f.Over() {
		if !pause.For(ctx, time.Second) {
			return false, nil
		}
	}
	return true, nil
}

// finish reads the rest of a run and adds its findings.
func finish(f *results.Follower, l *ledger, find Finder) error {
	if err := readAll(f, l); err != nil {
		return err
	}
	found, err := find(f.Run())
	if err == nil {
		l.end(found)
	}
	return err
}

// readAll reads all lines, including an unterminated last line if the run is over.
func readAll(f *results.Follower, l *ledger) error {
	f.Over()
	for {
		moved, err := f.Poll(l.handlers())
		if err != nil || !moved {
			return err
		}
	}
}

func write(w io.Writer, all []payload) error {
	for _, p := range all {
		if _, err := w.Write(p.body); err != nil {
			return err
		}
	}
	return nil
}

// openMetrics writes OpenMetrics text with the timestamps of the run
// (https://prometheus.io/docs/specs/om/open_metrics_spec/). The format requires the points of a
// series together, and the series of a metric; a run has them by second. Therefore points are first
// written to one temporary file per metric, and memory grows with the largest metric only.
type openMetrics struct {
	dir   string
	files map[*Metric]*spool
	all   []*series // by number
	said  []float64 // values of the point that is being written
	err   error
}

// A spool holds the points of a metric: number of the series, time, values.
type spool struct {
	file   *os.File
	out    *bufio.Writer
	values int // per point
}

func newOpenMetrics() (*openMetrics, error) {
	dir, err := os.MkdirTemp("", "weir-export-")
	return &openMetrics{dir: dir, files: map[*Metric]*spool{}}, err
}

// close removes the temporary files.
func (o *openMetrics) close() error {
	var errs []error
	for _, s := range o.files {
		errs = append(errs, s.file.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(o.dir))...)
}

// point implements sink. write returns its error.
func (o *openMetrics) point(p point) {
	if p.gone || o.err != nil {
		return
	}
	o.said = p.values(o.said[:0])
	sp := o.files[p.metric]
	if sp == nil {
		if sp, o.err = o.open(p.metric); o.err != nil {
			return
		}
	}
	for len(o.all) <= p.number {
		o.all = append(o.all, nil)
	}
	o.all[p.number] = p.series
	b := binary.LittleEndian.AppendUint32(nil, uint32(p.number))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.at))
	for _, x := range o.said {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	_, o.err = sp.out.Write(b)
}

func (o *openMetrics) open(m *Metric) (*spool, error) {
	f, err := os.Create(filepath.Join(o.dir, m.Name))
	if err != nil {
		return nil, err
	}
	sp := &spool{file: f, out: bufio.NewWriterSize(f, 32<<10), values: len(o.said)}
	o.files[m] = sp
	return sp, nil
}

// write writes all points, metric by metric.
func (o *openMetrics) write(w io.Writer, metrics []*Metric) error {
	out := bufio.NewWriterSize(w, 64<<10)
	for _, m := range metrics {
		if sp := o.files[m]; sp != nil && o.err == nil {
			head(out, m)
			o.err = o.metric(out, sp)
		}
	}
	if o.err != nil {
		return o.err
	}
	_, _ = out.WriteString("# EOF\n") // Flush has its error
	return out.Flush()
}

// head writes type, unit and description of a metric.
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

// A stored is a point in a spool.
type stored struct {
	number uint32
	at     int64
	from   int // offset of its values in the file
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
	var names []string // of the series' values
	last := uint32(math.MaxUint32)
	for _, p := range points {
		if p.number != last {
			names, last = names[:0], p.number
			for _, part := range o.all[p.number].parts() {
				names = append(names, part.name+labelText(part.labels))
			}
		}
		writeLines(out, names, p.at, text[p.from:])
	}
	return nil
}

// writeLines writes the values of a point after their names.
func writeLines(out *bufio.Writer, names []string, at int64, values []byte) {
	for i, name := range names {
		x := math.Float64frombits(binary.LittleEndian.Uint64(values[8*i:]))
		line := append(append(out.AvailableBuffer(), name...), ' ')
		line = strconv.AppendFloat(line, x, 'g', -1, 64)
		line = append(line, ' ')
		line = strconv.AppendFloat(line, float64(at)/1000, 'f', 3, 64)
		_, _ = out.Write(append(line, '\n')) // Flush has its error
	}
}

// labelText formats labels for text formats.
func labelText(labels []Label) string {
	parts := make([]string, len(labels))
	for i, l := range labels {
		parts[i] = l.Name + `="` + quoted(l.Value) + `"`
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// quoted escapes special characters of text formats.
func quoted(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
}
