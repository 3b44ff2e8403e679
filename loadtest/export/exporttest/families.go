package exporttest

import (
	"os/exec"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"weir/internal/require"
	"weir/lab/labtest"
)

// Families returns the metrics of a page by their names. The page must pass `promtool check metrics`.
func Families(t testing.TB, page string) map[string]*dto.MetricFamily {
	t.Helper()
	labtest.Need(t, "promtool")
	check := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	check.Stdin = strings.NewReader(page)
	if said, err := check.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("promtool check metrics: %v: %s", err, said)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(strings.NewReader(page))
	require.NoError(t, err)
	return all
}

// Sum adds up the values of a metric's series with these labels (name, value, ...); for histograms,
// the numbers of observations. series is the number of these series.
func Sum(f *dto.MetricFamily, labels ...string) (sum float64, series int) {
	for _, m := range f.GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		fits := true
		for i := 0; i < len(labels); i += 2 {
			fits = fits && has[labels[i]] == labels[i+1]
		}
		if fits {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			series++
		}
	}
	return sum, series
}
