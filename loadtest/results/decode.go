package results

import (
	"weir/internal/scan"
	"weir/loadtest/measure"
	"weir/monitor"
)

// A decoder reads lines of one file. It first tries the parser that is fast for lines in the form
// that this program writes, then the parser for any JSON. It reuses the memory of values that it
// fills: their slices and maps are overwritten when the same value is filled again.
type decoder struct {
	intervals measure.IntervalReader
	samples   scan.Reader[monitor.Sample]
}

// interval fills iv from b.
func (d *decoder) interval(b []byte, iv *measure.Interval) error {
	if d.intervals.Read(b, iv) {
		return nil
	}
	*iv = measure.Interval{}
	return decode(b, iv)
}

// A host is a sample with room for the values it points to.
type host struct {
	monitor.Sample
	room monitor.Sample
}

// sample fills h from b.
func (d *decoder) sample(b []byte, h *host) error {
	if d.samples.Read(b, &h.Sample, &h.room) {
		return nil
	}
	*h = host{}
	return decode(b, &h.Sample)
}
