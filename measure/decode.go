package measure

import (
	"encoding/json"

	"weir/internal/scan"
)

// An IntervalReader reads many lines of intervals.jsonl with the memory for one, several times as fast as encoding/json.
// The zero value is ready. It is not safe for concurrent use.
type IntervalReader struct{ lines scan.Reader[Interval] }

// Read fills v from b, in the memory that v has. It returns false if b is not written as this program writes;
// encoding/json then reads it, or says what is wrong.
func (d *IntervalReader) Read(b []byte, v *Interval) bool {
	read := d.lines.Read(b, v, v)
	v.renamePhase()
	return read
}

// renamePhase gives a phase that an older version wrote its name of today.
func (v *Interval) renamePhase() {
	switch v.Phase {
	case "settle":
		v.Phase = Warmup
	case "hold":
		v.Phase = Measured
	case "drain":
		v.Phase = GracefulStop
	}
}

// UnmarshalJSON reads an interval as encoding/json does by its keys.
func (v *Interval) UnmarshalJSON(b []byte) error {
	if new(IntervalReader).Read(b, v) {
		return nil
	}
	type interval Interval
	*v = Interval{}
	err := json.Unmarshal(b, (*interval)(v))
	v.renamePhase()
	return err
}

// UnmarshalJSON reads an event, also one of an older version, in which hold_seconds is what duration_seconds is today.
func (e *Event) UnmarshalJSON(b []byte) error {
	type event Event
	*e = Event{}
	older := struct {
		*event
		Hold float64 `json:"hold_seconds"`
	}{event: (*event)(e)}
	if err := json.Unmarshal(b, &older); err != nil {
		return err
	}
	if e.Duration == 0 {
		e.Duration = older.Hold
	}
	return nil
}

// UnmarshalJSON reads a worker, also one of an older version, in which told_seconds is what reported_seconds is today.
func (w *Worker) UnmarshalJSON(b []byte) error {
	type worker Worker
	*w = Worker{}
	older := struct {
		*worker
		Seconds int `json:"told_seconds"`
	}{worker: (*worker)(w)}
	if err := json.Unmarshal(b, &older); err != nil {
		return err
	}
	w.Seconds = max(w.Seconds, older.Seconds)
	return nil
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
