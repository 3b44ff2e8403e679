package reports

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"weir/internal/require"
)

// TestTrend computes the figures about the published points of GridFTP that the page of this report
// prints and weir does not: the linear trend of throughput per job, with and without outliers, and
// the share of the variance that a constant throughput explains. The table of the parts repeats
// the published rows.
func TestTrend(t *testing.T) {
	page := strings.Join(strings.Fields(string(require.File(t, filepath.Join(root, "docs/reports/000-gridftp-lvs.md")))), " ")
	jobs, each := published(t, "AverageThroughput.csv", 0), published(t, "AverageThroughput.csv", 1)
	var weighted, squares float64 // of the quotient C / jobs
	for i, n := range jobs {
		each[i] *= 1000 / n
		weighted, squares = weighted+each[i]/n, squares+1/(n*n)
	}
	constant, quotients := weighted/squares, []float64{}
	for _, n := range jobs {
		quotients = append(quotients, constant/n)
	}
	said := []string{fmt.Sprintf("%.1f Gbit/s divided by the jobs explain %.0f%%", constant/1000, 100*explained(each, quotients)),
		"Through all 20 points: " + line(jobs, each)}
	for rejected := true; rejected; {
		jobs, each, rejected = inliers(jobs, each)
	}
	said = append(said, fmt.Sprintf("%s, %d points", line(jobs, each), len(jobs)))
	for batch := 1000; batch <= 5000; batch += 1000 {
		file := fmt.Sprintf("%djobs.csv", batch)
		jobs, sums, each := published(t, file, 2), published(t, file, 1), published(t, file, 3)
		for i := range jobs {
			said = append(said, fmt.Sprintf("| %d, S%d | %.0f | %.1f | %.2f |", batch, i+1, jobs[i], sums[i], each[i]*1000))
		}
	}
	for _, text := range said {
		if !strings.Contains(page, text) {
			t.Errorf("the page of GridFTP does not have %q", text)
		}
	}
}

// published returns a column of a table that the report about GridFTP prints.
func published(t *testing.T, name string, column int) (values []float64) {
	t.Helper()
	f, err := os.Open(filepath.Join(root, "loadtest/analysis/testdata/gridftp", name))
	require.NoError(t, err)
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	for _, row := range rows[1:] {
		v, err := strconv.ParseFloat(row[column], 64)
		require.NoError(t, err)
		values = append(values, v)
	}
	return values
}

// fit returns the values of the straight line of least squares at all x, with its value at zero and
// its slope.
func fit(x, y []float64) (values []float64, zero, slope float64) {
	var mx, my, xx, xy float64
	for i := range x {
		mx, my = mx+x[i]/float64(len(x)), my+y[i]/float64(len(x))
	}
	for i := range x {
		xx, xy = xx+(x[i]-mx)*(x[i]-mx), xy+(x[i]-mx)*(y[i]-my)
	}
	slope = xy / xx
	zero = my - slope*mx
	for _, each := range x {
		values = append(values, zero+slope*each)
	}
	return values, zero, slope
}

// line describes the straight line through points, as the page does.
func line(x, y []float64) string {
	values, zero, slope := fit(x, y)
	return fmt.Sprintf("%.1f Mbit/s less %.2f for each 1000 jobs, R2 %.2f", zero, -1000*slope, explained(y, values))
}

// explained returns the share of the variance of y that values explain.
func explained(y, values []float64) float64 {
	var mean, rest, all float64
	for _, each := range y {
		mean += each / float64(len(y))
	}
	for i := range y {
		rest, all = rest+(y[i]-values[i])*(y[i]-values[i]), all+(y[i]-mean)*(y[i]-mean)
	}
	return 1 - rest/all
}

// inliers returns the points within two standard deviations of their line, and whether it rejected
// a point.
func inliers(x, y []float64) (keptX, keptY []float64, rejected bool) {
	values, _, _ := fit(x, y)
	var squares float64
	for i := range y {
		squares += (y[i] - values[i]) * (y[i] - values[i])
	}
	deviation := math.Sqrt(squares / float64(len(y)-2))
	for i := range y {
		if math.Abs(y[i]-values[i]) <= 2*deviation {
			keptX, keptY = append(keptX, x[i]), append(keptY, y[i])
		}
	}
	return keptX, keptY, len(keptX) < len(x)
}
