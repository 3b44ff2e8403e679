package results

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/measure"
	"weir/monitor"
	"weir/storage"
)

// load sets every field of v to a value that JSON does not omit.
func load(v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = time.Date(2026, 3, 1, 12, 0, 1, 234567891, time.UTC)
		return
	case *measure.Histogram:
		for i := range 40 {
			x.Record(time.Duration(i*i) * 100 * time.Microsecond)
		}
		return
	case *storage.Kind:
		*x = storage.Stat
		return
	case *map[string]*measure.Site:
		*x = map[string]*measure.Site{"cern": filled[measure.Site](), "padova": {Moved: 7}}
		return
	case *map[storage.Class]int64:
		*x = map[storage.Class]int64{storage.Timeout: 3, storage.NotFound: 4}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			load(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		load(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			load(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]int64{"open": 7, "read": 8}))
	case reflect.String:
		v.SetString("name-of " + v.Type().String())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1234567)
	case reflect.Float64:
		v.SetFloat(0.012345678901234567)
	default:
		panic("no value for " + v.Type().String())
	}
}

func filled[T any]() *T {
	v := new(T)
	load(reflect.ValueOf(v).Elem())
	return v
}

func line(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

// sameHistograms compares histograms by their values and their encodings.
func sameHistograms() cmp.Option {
	return cmp.Comparer(func(a, b measure.Histogram) bool {
		type bin struct {
			from, to float64
			n        int64
		}
		bins := func(h *measure.Histogram) (all []bin) {
			h.Buckets(func(from, to float64, n int64) { all = append(all, bin{from, to, n}) })
			return all
		}
		for _, q := range []float64{0, 0.001, 0.5, 0.9, 0.99, 0.999, 1} {
			if a.Quantile(q) != b.Quantile(q) {
				return false
			}
		}
		x, errX := json.Marshal(a)
		y, errY := json.Marshal(b)
		return a.Count() == b.Count() && a.Sum() == b.Sum() && cmp.Equal(bins(&a), bins(&b), cmp.AllowUnexported(bin{})) &&
			string(x) == string(y) && (errX == nil) == (errY == nil)
	})
}

// A new field of an interval or a sample must also be added to Fields, or to decode.go, at the same
// place: otherwise lines with it are read ten times slower.
func TestQuickWayKnowsEveryField(t *testing.T) {
	d := new(decoder)
	iv, h := new(measure.Interval), new(host)
	for range 2 { // the second time in used memory
		want := filled[measure.Interval]()
		if !d.intervals.Read(line(t, want), iv) {
			t.Fatalf("decode.go does not know a key, or not at its place: %s", line(t, want))
		}
		written := line(t, want)
		if err := json.Unmarshal(written, plain(want)); err != nil { // sums lose less than a nanosecond in JSON
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, iv, sameHistograms()); diff != "" {
			t.Errorf("interval (-want +got):\n%s", diff)
		}
		sample := filled[monitor.Sample]()
		if !d.samples.Read(line(t, sample), &h.Sample, &h.room) {
			t.Fatalf("decode.go does not know a key, or not at its place: %s", line(t, sample))
		}
		if diff := cmp.Diff(sample, &h.Sample); diff != "" {
			t.Errorf("sample (-want +got):\n%s", diff)
		}
		// Fields that are missing in a line must not keep values from the line before.
		if !d.intervals.Read([]byte(`{"start":"2026-01-01T00:00:00Z"}`), iv) || !d.samples.Read([]byte(`{"time":"2026-01-01T00:00:00Z"}`),
			&h.Sample, &h.room) {
			t.Fatal("lines with little in them are refused")
		}
		first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if diff := cmp.Diff(&measure.Interval{Start: first}, iv, sameHistograms()); diff != "" {
			t.Errorf("interval (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(&monitor.Sample{Time: first}, &h.Sample, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("sample (-want +got):\n%s", diff)
		}
	}
}

// unusual returns lines that differ from the form that this program writes.
func unusual() []string {
	return []string{
		`{}`, ``, `null`, `{`, `[]`, `{"start":null}`, `{"start":"2026-01-01T00:00:00Z","done":1.0}`,
		`{"start":"2026-01-01T00:00:00Z","done":01}`,
		`{"start":"2026-01-01T00:00:00Z","done":-0,"later":{"a":[1,2]}}`, `{"start":"2026-01-01T00:00:00+01:00","clients":1e400}`,
		`{"start":"2026-01-01T00:00:00Z", "done":1}`, `{"start":"2026-01-01T00:00:00Z","Done":1}`, `{"done":1,"start":"2026-01-01T00:00:00Z"}`,
		`{"start":"2026-01-01T00:00:00Z","done":9223372036854775807}`, `{"start":"2026-01-01T00:00:00Z","done":9223372036854775808}`,
		`{"start":"2026-01-01T00:00:00Z","done":1,"done":2}`, `{"start":"2026-01-01T00:00:00Z","clients":-1.5e-3}`,
		`{"start":"2026-01-01T00:00:00Z","clients":+1}`,
		`{"start":"2026-01-01T00:00:00Z","clients":1.}`, `{"start":"2026-01-01T00:00:00Z","clients":.5}`,
		`{"start":"2026-01-01T00:00:00Z","clients":0x10}`,
		`{"start":"2026-01-01T00:00:00Z","clients":Infinity}`, `{"start":"2026-01-01T00:00:00Z","clients":1_000}`,
		`{"start":"2026-01-01T00:00:00Z","clients":-0}`,
		`{"start":"2026-01-01T00:00:00Z","failed":{"timeout":1,"timeout":2}}`, `{"start":"2026-01-01T00:00:00Z","failed":{"nonsense":1}}`,
		`{"start":"2026-01-01T00:00:00Z","failed":{}}`,
		`{"start":"2026-01-01T00:00:00Z","sites":{}}`, `{"start":"2026-01-01T00:00:00Z","sites":null}`,
		`{"start":"2026-01-01T00:00:00Z","sites":{"a":null}}`,
		`{"start":"2026-01-01T00:00:00Z","sites":{"":{"moved_bytes":1}}}`,
		`{"start":"2026-01-01T00:00:00Z","sites":{"a":{"moved_bytes":1},"a":{"jobs_done":2}}}`,
		`{"start":"2026-02-30T00:00:00Z"}`, `{"start":"2026-01-01T00:00:00Z","kind":"fly"}`,
		`{"start":"2026-01-01T00:00:00Z","server":"a\u0041b"}`,
		`{"start":"2026-01-01T00:00:00Z","server":"` + "\xff" + `"}`, `{"start":"2026-01-01T00:00:00Z","server":"é"}`,
		`{"start":"2026-01-01T00:00:00Z"}x`,
		`{"start":"2026-01-01T00:00:00Z","latency_seconds":{"count":3,"sum":1,"hdr":"x}"}}`,
		`{"start":"2026-01-01T00:00:00Z","latency_seconds":{"count":0,"sum":5}}`,
		`{"start":"2026-01-01T00:00:00Z","late_seconds":{"count":0},"latency_seconds":{"count":0}}`,
		`{"time":"2026-01-01T00:00:00Z","cpu":{}}`, `{"time":"2026-01-01T00:00:00Z","cpu":null,"core_busy":[]}`,
		`{"time":"2026-01-01T00:00:00Z","core_busy":[1,]}`,
		`{"time":"2026-01-01T00:00:00Z","core_busy":[1,2e3,"x"]}`, `{"time":"2026-01-01T00:00:00Z","disks":[{}]}`,
		`{"time":"2026-01-01T00:00:00Z","disks":[{"name":"a"},{"busy":0.5}]}`,
		`{"time":"2026-01-01T00:00:00Z","service":{"late":true,"operations_by":{"open":1}}}`,
		`{"time":"2026-01-01T00:00:00Z","service":{"late":1}}`,
		`{"time":"2026-01-01T00:00:00Z","service":{"operations_by":{"":1}}}`, `{"time":"2026-01-01T00:00:00Z","cores":1e3}`,
		`{"time":"2026-01-01T00:00:00Z","core_busy":[`,
	}
}

// plain returns v as a type that encoding/json decodes by itself.
func plain(v *measure.Interval) any {
	type interval measure.Interval
	return (*interval)(v)
}

// agree decodes b with both decoders, and fails unless both return an error or the same value.
func agree(t *testing.T, d *decoder, iv *measure.Interval, h *host, b []byte) {
	t.Helper()
	wantInterval, wantSample := new(measure.Interval), new(monitor.Sample)
	want, got := decode(b, plain(wantInterval)), d.interval(b, iv)
	if (want == nil) != (got == nil) || want != nil &&
		strings.ReplaceAll(want.Error(), "results.interval", "measure.interval") != got.Error() {
		t.Fatalf("interval %s: %v, but encoding/json says %v", b, got, want)
	}
	if want == nil {
		if diff := cmp.Diff(wantInterval, iv, sameHistograms(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("interval %s (-want +got):\n%s", b, diff)
		}
	}
	want, got = decode(b, wantSample), d.sample(b, h)
	if (want == nil) != (got == nil) || want != nil && want.Error() != got.Error() {
		t.Fatalf("sample %s: %v, but encoding/json says %v", b, got, want)
	}
	if want == nil {
		if diff := cmp.Diff(wantSample, &h.Sample, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("sample %s (-want +got):\n%s", b, diff)
		}
	}
}

func TestBothWaysOfDecodingAgree(t *testing.T) {
	tier.Slow(t, "decodes thousands of lines")
	d, iv, h := new(decoder), new(measure.Interval), new(host)
	for _, text := range unusual() {
		agree(t, d, iv, h, []byte(text))
	}
	for _, whole := range [][]byte{line(t, filled[measure.Interval]()), line(t, filled[monitor.Sample]())} {
		for i := 0; i < len(whole); i += 3 { // cut, and with one byte changed
			agree(t, d, iv, h, whole[:i])
			changed := []byte(string(whole[:i]) + string(`0"}x,-`[i%6]) + string(whole[i+1:]))
			agree(t, d, iv, h, changed)
		}
	}
}

// FuzzDecode compares the fast decoder with encoding/json.
func FuzzDecode(f *testing.F) {
	for _, text := range unusual() {
		f.Add([]byte(text))
	}
	f.Add(line(f, filled[measure.Interval]()))
	f.Add(line(f, filled[monitor.Sample]()))
	d, iv, h := new(decoder), new(measure.Interval), new(host)
	f.Fuzz(func(t *testing.T, b []byte) { agree(t, d, iv, h, b) })
}

// Decoding a line into used memory takes at most these allocations.
func TestLinesAreDecodedWithoutGarbage(t *testing.T) {
	d, iv, h := new(decoder), new(measure.Interval), new(host)
	interval, sample := usualInterval(t), usualSample(t)
	for name, c := range map[string]struct {
		most float64
		read func() bool
	}{
		"interval": {4, func() bool { return d.intervals.Read(interval, iv) && checkInterval(iv) == nil }},
		"sample":   {0, func() bool { return d.samples.Read(sample, &h.Sample, &h.room) && checkSample(&h.Sample) == nil }},
	} {
		if !c.read() {
			t.Fatalf("%s: refused", name)
		}
		if n := testing.AllocsPerRun(100, func() { c.read() }); n > c.most {
			t.Errorf("%s: %v allocations a line, at most %v are needed", name, n, c.most)
		}
	}
}

func usualInterval(t testing.TB) []byte {
	iv := testInterval(3)
	iv.Failed = nil
	for i := range 60 {
		iv.Latency.Record(time.Duration(20+i*i) * time.Millisecond)
		iv.FirstByte.Record(time.Duration(5+i) * time.Millisecond)
		iv.Late.Record(time.Duration(40+i%7) * time.Microsecond)
	}
	return line(t, iv)
}

func usualSample(t testing.TB) []byte {
	s := filled[monitor.Sample]()
	s.Service, s.Cores, s.Core = nil, 16, make([]float64, 16)
	for i := range s.Core {
		s.Core[i] = 0.05998039004925 * float64(i)
	}
	return line(t, s)
}

func BenchmarkDecode(b *testing.B) {
	d, iv, h := new(decoder), new(measure.Interval), new(host)
	interval, sample := usualInterval(b), usualSample(b)
	for _, c := range []struct {
		name string
		size int
		read func() error
	}{
		{"interval/quick", len(interval), func() error { return d.interval(interval, iv) }},
		{"interval/encoding_json", len(interval), func() error { return decode(interval, plain(new(measure.Interval))) }},
		{"sample/quick", len(sample), func() error { return d.sample(sample, h) }},
		{"sample/encoding_json", len(sample), func() error { return decode(sample, new(monitor.Sample)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(c.size))
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, c.read())
			}
		})
	}
}

// Names in lines share their memory, within limits.
func TestManyNamesAreRead(t *testing.T) {
	d, h := new(decoder), new(host)
	for i := range 10_000 {
		name := strings.Repeat("x", i%97) + string(rune('a'+i%26))
		if err := d.sample([]byte(`{"time":"2026-01-01T00:00:00Z","host":"`+name+`"}`), h); err != nil || h.Host != name {
			t.Fatalf("%q: %q, %v", name, h.Host, err)
		}
	}
}
