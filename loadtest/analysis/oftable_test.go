package analysis

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"weir/internal/require"
	given "weir/loadtest/analysis/table"
)

func tableOf(t *testing.T, file string, o TableOptions) *Findings {
	t.Helper()
	r, err := os.Open(filepath.Join("testdata", file))
	require.NoError(t, err)
	defer r.Close()
	tab, err := given.Read(filepath.Base(file), r, given.Options{})
	require.NoError(t, err)
	f, err := AnalyzeTable(tab, o)
	require.NoError(t, err)
	return f
}

func tableText(t *testing.T, text string, o TableOptions) *Findings {
	t.Helper()
	tab, err := given.Read("t.csv", strings.NewReader(text), given.Options{})
	require.NoError(t, err)
	f, err := AnalyzeTable(tab, o)
	require.NoError(t, err)
	return f
}

// printedPerJob returns the values that the first document gives for each of its twenty points, in
// Gbit/s: AverageThroughputPerJob.
func printedPerJob() []string {
	return strings.Fields(`0.0682662 0.0434069 0.0237763 0.0298281 0.0257073 0.0240919 0.0225827 0.0223073 0.0160814 0.0149351
		0.0140681 0.0134065 0.0132036 0.0100252 0.00902405 0.00634888 0.00578309 0.00565263 0.00477516 0.00352412`)
}

// TestTwentyPoints checks the twenty points printed in "GridFTP-LVS Tests": their fourth-order
// maximum is at 2161 jobs, on the order of 29 Gbit/s, and the document's table of throughput per
// job has the same points.
func TestTwentyPoints(t *testing.T) {
	f := tableOf(t, "gridftp/AverageThroughput.csv", TableOptions{})
	if len(f.Curve) != 20 {
		t.Fatalf("%d points", len(f.Curve))
	}
	poly := f.Fits.Poly4
	if poly == nil || poly.Max == nil {
		t.Fatalf("no fourth-order maximum: %+v", f.Fits)
	}
	at, top := poly.Max.Clients.Value, poly.Max.Yield.Value*8/1e9
	if math.Abs(at-2160.5153) > 1e-4 || math.Round(at) != 2161 || math.Abs(top-29.0065) > 1e-4 {
		t.Errorf("maximum of %.3f Gbit/s at %.2f jobs, want 29.0065 at 2160.5153", top, at)
	}
	// The pairs are printed with six digits, and so are the quotients, which were computed before
	// rounding: they agree within these digits.
	for i, text := range printedPerJob() {
		want, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		if got := f.Curve[i].PerClient * 8 / 1e9; math.Abs(got-want) > 6e-6*want {
			t.Errorf("point %d: %.8f Gbit/s per job, printed %s", i+1, got, text)
		}
	}
}

// TestMethodsOfTables checks the figures printed in docs/methods.md.
func TestMethodsOfTables(t *testing.T) {
	page := require.File(t, "../../docs/methods.md")
	top := tableOf(t, "gridftp/AverageThroughput.csv", TableOptions{}).Fits.Poly4.Max
	said := []string{fmt.Sprintf("a fourth-order maximum of %.4f Gbit/s at %.4f jobs", top.Yield.Value*8/1e9, top.Clients.Value)}
	for _, network := range []string{"1000", "100"} {
		f := tableOf(t, "monarc/"+network+"mbit.csv", TableOptions{})
		a, b := &f.Curve[0], &f.Curve[1]
		at := a.ActiveClients + (600-a.Latency.Mean)/(b.Latency.Mean-a.Latency.Mean)*(b.ActiveClients-a.ActiveClients)
		said = append(said, map[string]string{"1000": fmt.Sprintf("600 s at %.1f jobs", at),
			"100": fmt.Sprintf("on 100 Mbit/s at %.1f,", at)}[network])
	}
	for _, text := range said {
		if !strings.Contains(string(page), text) {
			t.Errorf("docs/methods.md does not say %q", text)
		}
	}
}

// TestBatchTables checks that, in each of the five tables of subintervals, throughput per job is
// the quotient of the other two columns to all ten digits: the quotient of means, not the mean of
// quotients.
func TestBatchTables(t *testing.T) {
	for _, jobs := range []int{1000, 2000, 3000, 4000, 5000} {
		file := fmt.Sprintf("gridftp/%djobs.csv", jobs)
		f := tableOf(t, file, TableOptions{})
		raw, err := os.ReadFile(filepath.Join("testdata", file))
		require.NoError(t, err)
		printed := map[float64]float64{} // per job, by jobs
		for line := range strings.Lines(string(raw)) {
			var s, throughput, n, each float64
			if _, err := fmt.Sscanf(line, "S%f,%f,%f,%f", &s, &throughput, &n, &each); err == nil {
				printed[n] = each
			}
		}
		if len(f.Curve) != 4 || len(printed) != 4 {
			t.Fatalf("%s: %d points of %d rows", file, len(f.Curve), len(printed))
		}
		for _, s := range f.Curve {
			if want := printed[s.ActiveClients]; math.Abs(s.PerClient*8/1e9-want) > 5e-10*want {
				t.Errorf("%s: %.11f Gbit/s per job at %v jobs, printed %.11f", file, s.PerClient*8/1e9, s.ActiveClients, want)
			}
		}
	}
}

// TestBatchAverages checks the average throughput of a batch: as printed, it is the mean of its
// four subintervals, weighted by their points, and of the few points that remain after the division
// by four; these points must lie between zero and the printed maximum. For 1000, 3000 and 4000 jobs
// there are such points. The averages printed for 2000 and 5000 jobs cannot follow from the printed
// subintervals.
func TestBatchAverages(t *testing.T) {
	for _, c := range []struct {
		jobs, points, each   int
		average, most        float64
		follows              bool
		offBy, percentOfMean float64
	}{
		{1000, 191, 47, 22.945, 32.934, true, 0.0345, 0.15},
		{2000, 185, 46, 26.853, 34.211, false, -0.5166, 1.93},
		{3000, 169, 42, 28.384, 37.190, true, -0.0285, 0.10},
		{4000, 191, 48, 26.263, 36.328, true, 0.0251, 0.10},
		{5000, 172, 43, 23.334, 37.076, false, 0.1546, 0.67},
	} {
		f := tableOf(t, fmt.Sprintf("gridftp/%djobs.csv", c.jobs), TableOptions{})
		mean := 0.0
		for _, s := range f.Curve {
			mean += s.Throughput * 8 / 1e9 / 4
		}
		off := mean - c.average
		if math.Abs(off-c.offBy) > 5e-4 || math.Abs(math.Abs(100*off/c.average)-c.percentOfMean) > 0.01 {
			t.Errorf("%d jobs: mean of the subintervals %.4f, printed %.3f: off by %.4f, %.2f%%", c.jobs, mean, c.average, off, 100*off/c.average)
		}
		left := float64(c.points - 4*c.each)
		follows := math.Abs(off) < 0.0005
		if left != 0 { // required average of the points left over (or counted twice)
			rest := (c.average*float64(c.points) - mean*float64(4*c.each)) / left
			follows = rest >= 0 && rest <= c.most
		}
		if follows != c.follows {
			t.Errorf("%d jobs: follows from the subintervals: %v", c.jobs, follows)
		}
	}
}

// TestMonarcBoundaries checks the boundary conditions that the MONARC note lists in its
// conclusions, from the numbers that it prints. Its text requires a mean wall clock time under ten
// times the time of one job "for each configuration", but its whole list uses 600 s, which is ten
// times the time of the single job on the fastest network: with that limit the list follows, with
// the limit of each configuration it does not.
func TestMonarcBoundaries(t *testing.T) {
	const limit = "latency_mean <= 600s"
	for _, c := range []struct {
		file      string
		condition string
		from, to  float64 // 0: nowhere
		broken    float64
		crossing  float64
		detail    string
	}{
		// with the numbers of section 3.5.3 alone
		{"1000mbit.csv", limit, 1, 10, 0, 0, "holds from 1 to 10 clients, the heaviest load tested"},
		{"100mbit.csv", limit, 1, 10, 0, 0, "holds from 1 to 10 clients, the heaviest load tested"},
		{"10mbit.csv", limit, 1, 1, 10, 5.5, "holds at 1 client, but not at 10 clients (crossed at about 5.5)"},
		{"2mbit.csv", limit, 0, 0, 0, 0, "not acceptable at any tested load: already 16m40s at 1 client"},
		// and with the points that the list itself adds
		{"1000mbit-concluded.csv", limit, 1, 15, 0, 0, "holds from 1 to 15 clients, the heaviest load tested"},
		{"100mbit-concluded.csv", limit, 1, 15, 0, 0, "holds from 1 to 15 clients, the heaviest load tested"},
		{"10mbit-concluded.csv", limit, 1, 6, 10, 6, "holds from 1 to 6 clients, but not at 10 clients"},
		// the definition of the text, with each configuration's own single job
		{"1000mbit-concluded.csv", "latency_mean <= 10 x single", 1, 15, 0, 0, "holds from 1 to 15 clients, the heaviest load tested; " +
			"the limit is 10m, 10 x 60 s at 1 client"},
		{"100mbit-concluded.csv", "latency_mean <= 10 x single", 1, 10, 15, 10 + 5*(480.0-150)/(600-150), ""},
		{"10mbit.csv", "latency_mean < 10 x single", 1, 10, 0, 0, "the limit is 33m20s, 10 x 3m20s at 1 client"},
		{"2mbit.csv", "latency_mean < 10 x single", 1, 10, 0, 0, ""},
	} {
		f := tableOf(t, "monarc/"+c.file, TableOptions{Boundaries: []string{c.condition}})
		if len(f.Boundaries) != 1 {
			t.Fatalf("%s: %+v", c.file, f.Boundaries)
		}
		b := f.Boundaries[0]
		value := func(p *float64) float64 {
			if p == nil {
				return 0
			}
			return *p
		}
		if value(b.From) != c.from || value(b.To) != c.to || value(b.Next) != c.broken || math.Abs(value(b.Crossing)-c.crossing) > 1e-9 ||
			!strings.Contains(b.Detail, c.detail) {
			t.Errorf("%s, %s: from %v to %v, broken at %v, crossed at %v: %s", c.file, c.condition, value(b.From), value(b.To), value(b.Next),
				value(b.Crossing), b.Detail)
		}
	}
}
