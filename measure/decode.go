package measure

import (
	"encoding/json"
	"time"

	"weir/internal/scan"
	"weir/storage"
)

// An IntervalReader reads many lines of intervals.jsonl with the memory for one.
// Lines as this program writes them are read several times as fast as by
// encoding/json. The zero value is ready. It is not safe for concurrent use.
type IntervalReader struct {
	line       scan.Line
	histograms HistogramReader
}

// Read fills v from b, in the memory that v has. It returns false if b is not
// written as this program writes; encoding/json then reads it, or says what is wrong.
func (d *IntervalReader) Read(b []byte, v *Interval) bool {
	l := &d.line
	l.Reset(b)
	v.Start, v.Seconds, v.Step, v.Phase, v.Clients, v.Kind, v.Server, v.Sites = time.Time{}, 0, 0, "", 0, 0, "", nil
	v.Reset()
	l.Open()
	if !l.Key("start") || v.Start.UnmarshalText(l.Bytes()) != nil {
		return false
	}
	scan.Fraction(l, "duration_seconds", &v.Seconds)
	scan.Number(l, "step", &v.Step)
	scan.Name(l, "phase", &v.Phase)
	scan.Fraction(l, "clients", &v.Clients)
	if l.Key("kind") && v.Kind.UnmarshalText(l.Bytes()) != nil {
		l.Refuse()
	}
	scan.Name(l, "server", &v.Server)
	for _, f := range v.Fields() {
		d.field(f)
	}
	d.sites(v)
	l.Close()
	return l.Whole()
}

// UnmarshalJSON reads an interval as encoding/json does by its keys.
func (v *Interval) UnmarshalJSON(b []byte) error {
	if new(IntervalReader).Read(b, v) {
		return nil
	}
	type interval Interval
	*v = Interval{}
	return json.Unmarshal(b, (*interval)(v))
}

// field reads a quantity if it is next.
func (d *IntervalReader) field(f Field) {
	l := &d.line
	if !l.Key(f.Key) {
		return
	}
	switch v := f.Value.(type) {
	case *int64:
		*v = l.Int()
	case *float64:
		*v = l.Float()
	case *time.Time:
		if v.UnmarshalText(l.Bytes()) != nil {
			l.Refuse()
		}
	case *map[storage.Class]int64:
		*v = failures(l)
	case *Histogram:
		if !d.histograms.Read(v, l.Object()) {
			l.Refuse()
		}
	}
}

func failures(l *scan.Line) map[storage.Class]int64 {
	failed := map[storage.Class]int64{}
	l.Open()
	for k := l.AnyKey(); k != ""; k = l.AnyKey() {
		var class storage.Class
		if class.UnmarshalText([]byte(k)) != nil {
			l.Refuse()
		}
		failed[class] = l.Int()
	}
	l.Close()
	return failed
}

// sites reads what jobs did at each of several sites.
func (d *IntervalReader) sites(v *Interval) {
	l := &d.line
	if !l.Key("sites") {
		return
	}
	v.Sites = map[string]*Site{}
	l.Open()
	for name := l.AnyKey(); name != ""; name = l.AnyKey() {
		s := &Site{}
		v.Sites[name] = s
		l.Open()
		scan.Number(l, "moved_bytes", &s.Moved)
		scan.Fraction(l, "client_cpu_seconds", &s.CPU)
		for _, f := range s.Fields() {
			d.field(f)
		}
		l.Close()
	}
	l.Close()
}
