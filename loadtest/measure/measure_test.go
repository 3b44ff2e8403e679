package measure

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"weir/internal/require"
	"weir/storage"
)

// total cuts r and adds all intervals up.
func total(r *Recorder) (*Interval, []Event) {
	rows, events := r.Cut(1, Measured, storage.Read)
	sum := rows[0]
	for _, v := range rows[1:] {
		clients := sum.Clients // all rows of one cut have the same clients
		sum.Add(v)
		sum.Clients = clients
	}
	return sum, events
}

// The squares of the operations that each client completed in a phase add up over the cuts of the
// phase, for all kinds and servers.
func TestSquaresOfClients(t *testing.T) {
	r := NewRecorder(nil, "")
	diligent, lazy := r.Meter(), r.Meter()
	for _, phase := range []string{"first", "second"} {
		r.BeginPhase()
		done, squares := int64(0), 0.0
		for range 3 {
			for i := range 4 {
				diligent.Start(storage.Kind(i % 2))
				diligent.ServedBy("ds1:1094")
				diligent.End(&storage.Result{}, nil)
			}
			lazy.Start(storage.Read)
			lazy.End(&storage.Result{}, nil)
			lazy.Fail(storage.Read, storage.ErrShort)
			v, _ := total(r)
			done, squares = done+v.Done, squares+v.DoneSquares
		}
		if done != 15 || squares != 12*12+3*3 {
			t.Errorf("%s phase: %d operations, squares %g", phase, done, squares)
		}
	}
}

// Each cut has the time that operations took until then, regardless of their later course: an
// operation that lasts, an operation that another server ends, an operation that fails and whose
// check takes a second.
func TestTimeInOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder(nil, "")
		spent := func(want float64) {
			t.Helper()
			if v, _ := total(r); math.Abs(v.OperationTime-want) > 1e-9 {
				t.Errorf("clients were in operations for %g s, want %g", v.OperationTime, want)
			}
		}
		time.Sleep(time.Second)
		spent(0)
		long, redirected, failing := r.Meter(), r.Meter(), r.Meter()
		long.Start(storage.Read)
		redirected.Start(storage.Read)
		time.Sleep(time.Second)
		spent(2)
		redirected.ServedBy("ds1:1094")
		failing.Start(storage.Write)
		time.Sleep(250 * time.Millisecond)
		redirected.End(&storage.Result{}, nil)
		failing.Stopped()
		time.Sleep(time.Second)
		failing.End(&storage.Result{}, storage.ErrChecksum)
		spent(1.25 + 0.25 + 0.25)
		time.Sleep(10 * time.Hour)
		long.End(&storage.Result{}, nil)
		spent(36000)
		spent(0)
	})
}

func TestMeterCountsWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder(nil, "")
		m := r.Meter()
		r.Active(1)
		m.Start(storage.Read)
		time.Sleep(10 * time.Millisecond)
		m.Reached(storage.Connected)
		time.Sleep(10 * time.Millisecond)
		m.Reached(storage.Authenticated)
		time.Sleep(30 * time.Millisecond)
		m.Reached(storage.FirstByte)
		m.Reached(storage.FirstByte) // only the first counts
		m.Moved(1000)
		m.Moved(24)
		time.Sleep(50 * time.Millisecond)
		m.Stopped()
		time.Sleep(time.Second) // checking, not part of the operation
		m.End(&storage.Result{Discarded: 1000, Wire: 1300}, nil)
		m.Verified()
		m.Task(3 * time.Second)

		v, events := total(r)
		if v.Moved != 1024 || v.Discarded != 1000 || v.Wire != 1300 || v.Begun != 1 || v.Done != 1 || v.Verified != 1 || v.Tasks != 1 ||
			v.Sessions != 1 {
			t.Errorf("counters wrong: %+v", v)
		}
		if v.Think != 3 || v.Clients != 1 || len(v.Failed) != 0 || len(events) != 0 {
			t.Errorf("think %v, clients %v, failed %v, events %v", v.Think, v.Clients, v.Failed, events)
		}
		for _, c := range []struct {
			name string
			h    *Histogram
			want float64
		}{{"latency", &v.Latency, .1}, {"first byte", &v.FirstByte, .05}, {"connect", &v.Connect, .01}, {"login", &v.Login, .02}} {
			if c.h.Count() != 1 || c.h.Mean() != c.want || math.Abs(c.h.Quantile(.5)-c.want) > c.want/100 {
				t.Errorf("%s: count %d mean %v median %v, want 1 of %v", c.name, c.h.Count(), c.h.Mean(), c.h.Quantile(.5), c.want)
			}
		}
		if v, _ := total(r); v.Moved != 0 || v.Done != 0 || v.Latency.Count() != 0 {
			t.Errorf("a second cut tells the same again: %+v", v)
		}
	})
}

func TestBytesCountWhenTheyMoveAndWhereTheyComeFrom(t *testing.T) {
	r := NewRecorder(nil, "")
	m := r.Meter()
	m.Start(storage.Read)
	m.ServedBy("ds1:1094")
	m.Moved(10)
	rows, _ := r.Cut(1, Measured, storage.Read)
	by := map[string]*Interval{}
	for _, v := range rows {
		by[v.Server] = v
	}
	if by["ds1:1094"] == nil || by["ds1:1094"].Moved != 10 || by[""].Moved != 0 || by[""].Begun != 1 {
		t.Fatalf("bytes of a running operation are not with their data server: %+v", by)
	}
	m.End(&storage.Result{}, nil)
	rows, _ = r.Cut(1, Measured, storage.Read)
	for _, v := range rows {
		if want := int64(len(v.Server) / len("ds1:1094")); v.Done != want {
			t.Errorf("server %q: done %d, want %d", v.Server, v.Done, want)
		}
	}
}

func TestFailuresAreClassedAndTheFirstOfEachStepKept(t *testing.T) {
	r := NewRecorder(nil, "")
	m := r.Meter()
	fail := func(err error) {
		m.Start(storage.Stat)
		m.End(&storage.Result{}, err)
	}
	for range 10 {
		fail(&storage.OpError{Kind: storage.Stat, URL: "http://x/y", Err: fs.ErrNotExist})
	}
	fail(errors.New("odd"))
	v, events := total(r)
	if v.Failed[storage.NotFound] != 10 || v.Failed[storage.Other] != 1 || v.Done != 0 || v.Latency.Count() != 0 {
		t.Errorf("failed %v, done %d", v.Failed, v.Done)
	}
	if len(events) != examplesPerClass+1 || events[0].Class != storage.NotFound || events[0].Step != 1 || events[0].What == "" {
		t.Errorf("kept %d errors, want %d: %v", len(events), examplesPerClass+1, events)
	}
	r.Cut(2, Ramp, storage.Stat)
	fail(fs.ErrNotExist)
	if _, events := r.Cut(2, Measured, storage.Stat); len(events) != 1 {
		t.Errorf("a new step keeps its own errors: %d, want 1", len(events))
	}
}

func TestOpenModelCountsFromThePlannedStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder(nil, "")
		m := r.Meter()
		time.Sleep(time.Second)
		m.StartAt(storage.Read, r.Now(), 200*time.Millisecond)
		m.Reached(storage.Connected)
		time.Sleep(100 * time.Millisecond)
		m.End(&storage.Result{}, nil)
		v, _ := total(r)
		if got := v.Latency.Mean(); got != .9 {
			t.Errorf("latency %v s, want 0.9 from the planned start", got)
		}
	})
}

func TestClientsAreTheMeanOverTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder(nil, "")
		r.Active(4)
		time.Sleep(250 * time.Millisecond)
		r.Active(-2)
		time.Sleep(750 * time.Millisecond)
		if v, _ := total(r); v.Clients != 2.5 || v.Seconds != 1 {
			t.Errorf("%v clients over %v s, want 2.5 over 1", v.Clients, v.Seconds)
		}
	})
}

// A pause that begins while an interval is cut counts in one of the two intervals, and in neither
// below zero.
func TestPausesDuringACutAreNotNegative(t *testing.T) {
	r := NewRecorder(nil, "")
	const clients = 4
	end := make(chan struct{})
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
					r.Paused(1)
					r.Asked(1)
					r.Active(1)
					r.Active(-1)
					r.Asked(-1)
					r.Paused(-1)
				}
			}
		})
	}
	for range 5000 {
		intervals, _ := r.Cut(1, Measured, storage.Read)
		v := intervals[0]
		if v.Paused < 0 || v.RetryAfter < 0 || v.Clients < 0 || v.Clients > clients {
			t.Errorf("paused %g s, asked to wait %g s, %g clients", v.Paused, v.RetryAfter, v.Clients)
			break
		}
	}
	close(end)
	running.Wait()
}

func TestManyMetersOneSum(t *testing.T) {
	r := NewRecorder(nil, "")
	const clients, each = 64, 500
	var wg sync.WaitGroup
	var got Interval
	for range clients {
		m := r.Meter()
		wg.Go(func() {
			for range each {
				m.Start(storage.Read)
				m.Moved(7)
				m.End(&storage.Result{}, nil)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		v, _ := total(r)
		got.Add(v)
	}
	if got.Done != clients*each || got.Moved != 7*clients*each || got.Latency.Count() != clients*each || got.Begun != got.Done {
		t.Errorf("done %d moved %d latencies %d, want %d operations of 7 bytes", got.Done, got.Moved, got.Latency.Count(), clients*each)
	}
}

func TestHistogramJSON(t *testing.T) {
	var h, back Histogram
	for i := range 1000 {
		h.Record(time.Duration(i+1) * time.Millisecond)
	}
	h.Record(2 * time.Hour) // beyond the range: counts at its end, sums in full
	b, err := json.Marshal(h)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &back))
	if back.Count() != 1001 || math.Abs(back.Sum()-h.Sum()) > 1e-6 {
		t.Errorf("count %d sum %v, want 1001 and %v", back.Count(), back.Sum(), h.Sum())
	}
	for _, q := range []float64{.5, .9, .99} {
		if want := q; math.Abs(back.Quantile(q)-want) > .011*want {
			t.Errorf("quantile %v is %v, want within 1.1%% of %v s", q, back.Quantile(q), want)
		}
	}
	if err := json.Unmarshal([]byte(`{"count":3,"hdr":"HISTFnonsense"}`), &back); err == nil {
		t.Error("a damaged histogram is accepted")
	}
}

func FuzzHistogramJSON(f *testing.F) {
	var h Histogram
	h.Record(time.Second)
	b, err := json.Marshal(h)
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte(`{"count":0}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, sum Histogram
		if json.Unmarshal(b, &h) != nil {
			return
		}
		sum.Merge(&h)
		if _, err := json.Marshal(sum); err != nil {
			t.Error(err)
		}
	})
}

func operation(m *Meter, res *storage.Result) {
	m.Start(storage.Read)
	m.Reached(storage.FirstByte)
	m.Moved(4096)
	m.End(res, nil)
	m.Task(0)
}

func TestMeteringAllocatesNothing(t *testing.T) {
	m, res := NewRecorder(nil, "").Meter(), &storage.Result{}
	operation(m, res)
	if n := testing.AllocsPerRun(1000, func() { operation(m, res) }); n != 0 {
		t.Errorf("%v allocations an operation, want none", n)
	}
}

func BenchmarkMeter(b *testing.B) {
	m, res := NewRecorder(nil, "").Meter(), &storage.Result{}
	b.ReportAllocs()
	for b.Loop() {
		operation(m, res)
	}
}

func BenchmarkMeterParallel(b *testing.B) {
	r := NewRecorder(nil, "")
	b.RunParallel(func(pb *testing.PB) {
		m, res := r.Meter(), &storage.Result{}
		for pb.Next() {
			operation(m, res)
		}
	})
}

// The output of a histogram is read by HdrHistogram's own decoder and by this package with the same
// counters, and so is the output of HdrHistogram. Quantiles are HdrHistogram's.
func TestHistogramsAreHdrHistograms(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i, n := range []int{1, 2, 5, 100, 3000, 100_000} {
		var h Histogram
		theirs := hdrhistogram.New(lowest, highest, digits)
		record := func(d time.Duration, count int64) {
			h.Record(d)
			h.add(int64(d), count-1)
			require.NoError(t, theirs.RecordValues(max(int64(d), lowest), count))
		}
		for range n {
			record(time.Duration(math.Exp(random.Float64()*math.Log(float64(highest)))), 1)
		}
		// values that are rare among random values: neighbors, a gap of one counter, large counts
		for _, at := range []int{0, 1, 2, 4, 5, counters / 2} {
			record(time.Duration(max(valueOf(at), lowest)), 1+int64(i)*(math.MaxInt64/1000))
		}
		sameAs(t, &h, theirs)
		text, err := json.Marshal(h)
		require.NoError(t, err)
		var j histogramJSON
		require.NoError(t, json.Unmarshal(text, &j))
		decoded, err := hdrhistogram.Decode([]byte(j.HDR))
		require.NoError(t, err)
		if !theirs.Equals(decoded) || decoded.TotalCount() != h.Count() || float64(theirs.Min())/1e9 != j.Min {
			t.Errorf("%d values: HdrHistogram reads %d of them, from %v s", n, decoded.TotalCount(), j.Min)
		}
		compressed, err := theirs.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		require.NoError(t, err)
		for _, packed := range []string{j.HDR, string(compressed)} {
			j.HDR = packed
			text, err := json.Marshal(j)
			require.NoError(t, err)
			var back, sum Histogram
			if !new(HistogramReader).Read(&back, text) {
				t.Fatalf("%d values: %s is not read by the fast reader", n, text)
			}
			sameAs(t, &back, theirs)
			sum.Merge(&back)
			sameAs(t, &sum, theirs)
			if math.Abs(sum.Sum()-h.Sum()) > 1e-9*h.Sum() {
				t.Errorf("%d values: a sum of %v, want %v", n, sum.Sum(), h.Sum())
			}
		}
	}
}

// sameAs fails t if h differs from HdrHistogram's histogram of the same values.
func sameAs(t *testing.T, h *Histogram, theirs *hdrhistogram.Histogram) {
	t.Helper()
	var want, got []hdrhistogram.Bar
	for _, b := range theirs.Distribution() {
		if b.Count > 0 {
			want = append(want, b)
		}
	}
	for _, b := range h.list() {
		got = append(got, hdrhistogram.Bar{From: valueOf(b.index), To: top(b.index), Count: b.count})
	}
	if !slices.Equal(got, want) || h.Count() != theirs.TotalCount() {
		t.Errorf("%d values, counters %v, want %d, %v", h.Count(), got, theirs.TotalCount(), want)
	}
	for _, q := range []float64{0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1} {
		if got, want := h.Quantile(q), float64(theirs.ValueAtPercentile(q*100))/1e9; got != want {
			t.Errorf("%d values, quantile %v: %v, want %v", h.Count(), q, got, want)
		}
	}
}

// Another program's histogram, with other digits, is read within 1%, and a damaged histogram is
// refused.
func TestHistogramsOfOthers(t *testing.T) {
	long := hdrhistogram.New(1, int64(time.Hour), 5)
	for v := range int64(70_000) {
		require.NoError(t, long.RecordValue(1+v*1000))
	}
	packed, err := long.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	require.NoError(t, err)
	var h Histogram
	require.NoError(t, h.UnmarshalJSON(fmt.Appendf(nil, `{"count":70000,"sum":2.45,"hdr":%q}`, packed)))
	for _, q := range []float64{0.01, 0.5, 0.99, 1} {
		if got, want := h.Quantile(q), float64(long.ValueAtPercentile(q*100))/1e9; math.Abs(got-want) > want/100 || h.Count() != 70_000 {
			t.Errorf("quantile %v of %d values: %v, want %v", q, h.Count(), got, want)
		}
	}
	h = Histogram{}
	h.Record(time.Millisecond)
	good, err := base64.StdEncoding.DecodeString(pack(h.list()))
	require.NoError(t, err)
	for at := range good {
		bad := slices.Clone(good)
		bad[at] ^= 0xff
		text := fmt.Sprintf(`{"count":1,"sum":0.001,"hdr":%q}`, base64.StdEncoding.EncodeToString(bad))
		var h Histogram
		if new(HistogramReader).Read(&h, []byte(text)) {
			t.Errorf("byte %d changed: %+v is read", at, h)
		}
	}
}
