package results

import (
	"weir/internal/scan"
	"weir/loadtest/measure"
	"weir/monitor"
)

// A decoder reads lines of one file. It first tries the way that is fast for
// lines as this program writes them, then the one that takes any JSON. What it
// fills is its to reuse: slices and maps of a value are overwritten when the
// same value is filled again.
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

// A host is a sample with room for what it points to.
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
