package export

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"weir/internal/pause"
	"weir/loadtest/measure"
)

// A duration counts in the first bucket whose bound it does not exceed; a duration equal to a bound
// counts in the bucket of that bound.
func TestBuckets(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want float64 // bound
	}{
		{time.Nanosecond, 1e-4}, {100 * time.Microsecond, 1e-4}, {time.Millisecond, 1e-3}, {1100 * time.Microsecond, 2.5e-3},
		{time.Second, 1}, {10 * time.Minute, 600}, {time.Hour, math.Inf(1)},
	} {
		var h measure.Histogram
		h.Record(c.d)
		s := &buckets{counts: make([]float64, len(bounds())+1)}
		s.add(&h, bounds())
		for i, bound := range append(bounds(), math.Inf(1)) {
			if want := flag(bound == c.want); s.counts[i] != want {
				t.Errorf("%s: bucket %v has %v", c.d, bound, s.counts[i])
			}
		}
		if s.count != 1 || math.Abs(s.sum-c.d.Seconds()) > 1e-9 {
			t.Errorf("%s: count %v, sum %v", c.d, s.count, s.sum)
		}
	}
}

// FuzzTag checks tags against the line protocol: every comma, equal sign and space in a tag must
// follow a backslash, and no tag may end the line.
func FuzzTag(f *testing.F) {
	for _, v := range []string{"a,b=c d", `\`, `a\`, `\,`, "\n", "x\x00y", "é, ü"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v string) {
		out := newInflux(100)
		m := &Metric{Name: "weir_x", Group: "weir_g"}
		out.point(point{&series{metric: m, labels: []Label{{"server", strings.ToValidUTF8(v, "\uFFFD")}}, value: 1}, 5, false})
		text := string(out.flush()[0].body)
		if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, " x=1 5000000\n") {
			t.Fatalf("%q", text)
		}
		head := strings.TrimSuffix(text, " x=1 5000000\n")
		_, tag, _ := strings.Cut(head, ",")
		plain := strings.TrimPrefix(tag, "server=")
		for i := 0; i < len(plain); i++ {
			switch plain[i] {
			case '\\':
				if i+1 == len(plain) || !strings.ContainsRune(", =", rune(plain[i+1])) {
					t.Fatalf("%q", plain)
				}
				i++
			case ',', '=', ' ':
				t.Fatalf("%q", plain)
			}
		}
	})
}

// Values that a format cannot encode are left out, and all others are exact.
func TestLines(t *testing.T) {
	out := newInflux(1 << 20)
	m, n := &Metric{Name: "weir_a_total", Group: "weir_g"}, &Metric{Name: "weir_b", Group: "weir_g"}
	labels := []Label{{"kind", "read"}}
	for i, x := range []float64{0.1, 1e300, math.NaN(), math.Inf(1)} {
		at := int64(1000 * (i + 1))
		out.point(point{&series{metric: m, labels: labels, value: x}, at, false})
		out.point(point{&series{metric: n, number: 1, labels: labels, value: 7}, at, i == 1})
	}
	want := "weir_g,kind=read a_total=0.1,b=7 1000000000\nweir_g,kind=read a_total=1e+300 2000000000\nweir_g,kind=read b=7 " +
		"3000000000\nweir_g,kind=read b=7 4000000000\n"
	all := out.flush()
	if len(all) != 1 || string(all[0].body) != want || all[0].values != 5 || all[0].first != 1000 {
		t.Errorf("%s%+v", all[0].body, all)
	}
}

// The pause that a server may request is limited.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-7": 0, "soon": 0, "99999999999999999999": 0, "100000": 10 * time.Minute,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second, "Sun, 01 Mar 2026 11:00:00 GMT": 0,
	} {
		if got := pause.After(text, now, longestRetryAfter); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// The clock of a run may be set back; the times of a series still increase.
func TestTimesGrow(t *testing.T) {
	l := &ledger{bounds: bounds(), sink: &ordered{}}
	s := l.open(&Metric{Name: "weir_x_total"}, nil)
	for _, at := range []int64{1000, 2000, 500, 500, 3000} {
		s.value++
		l.emit(s, at-1000, at)
	}
	var times []int64
	for _, p := range l.sink.(*ordered).waiting {
		times = append(times, p.at)
	}
	for i := 1; i < len(times); i++ {
		if times[i] <= times[i-1] {
			t.Errorf("times %v", times)
		}
	}
	if len(times) != 6 {
		t.Errorf("%d points, 6 are wanted: a 0 at the begin, and five", len(times))
	}
}

// Labels of text formats are quoted.
func TestQuoted(t *testing.T) {
	var out bytes.Buffer
	out.WriteString(labelText([]Label{{"a", "x\"y\\z\n"}, {"b", ""}}))
	if want := `{a="x\"y\\z\n",b=""}`; out.String() != want {
		t.Errorf("%s instead of %s", out.String(), want)
	}
}

// Values that are too long for receivers are shortened, and stay different.
func TestLabelValue(t *testing.T) {
	long := strings.Repeat("é", 3000)
	a, b := labelValue(long+"a"), labelValue(long+"b")
	if a == b || len(a) > longestLabel || !utf8.ValidString(a) || labelValue("x\xff") != "x\uFFFD" {
		t.Errorf("%q\n%q", a, b)
	}
}

// BenchmarkRemoteWrite measures the cost of one value on its way from the ledger into a request.
func BenchmarkRemoteWrite(b *testing.B) {
	enc := newRemote(5000)
	l := &ledger{t: newTables(), bounds: bounds(), sink: enc}
	e := l.t.clients.of(l, "read", "ds1:1094", "")
	iv := &measure.Interval{Sum: measure.Sum{Moved: 1 << 20, Begun: 10, Done: 10, Tasks: 10}}
	at := int64(0)
	for b.Loop() {
		at += 1000
		e.add(l, iv)
		e.emit(l, at, at+1000)
		enc.flush()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/6, "ns/value")
}
