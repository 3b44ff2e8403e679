package measure

import (
	"encoding/json"

	"weir/internal/scan"
)

// An IntervalReader reads many lines of intervals.jsonl with the memory for one, several times as fast as encoding/json.
// The zero value is ready. It is not safe for concurrent use.
type IntervalReader struct{ lines scan.Reader[Interval] }

// Read fills v from b, in the memory that v has. It returns false if b is not written as this program writes;
// encoding/json then reads it or returns the error.
func (d *IntervalReader) Read(b []byte, v *Interval) bool {
	return d.lines.Read(b, v, v)
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

// ReadLine reads h from a line; see [scan.Value].
func (h *Histogram) ReadLine(l *scan.Line) {
	d, ok := l.Scratch.(*HistogramReader)
	if !ok {
		d = new(HistogramReader)
		l.Scratch = d
	}
	if !d.Read(h, l.Object()) {
		l.Refuse()
	}
}
