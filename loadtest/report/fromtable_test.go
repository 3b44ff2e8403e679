package report

import (
	"bytes"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis"
	given "weir/loadtest/analysis/table"
)

// The report neither shows nor claims results for which a table has no data.
func TestFromTable(t *testing.T) {
	for _, c := range []struct {
		name, text string
		has, lacks []string
	}{
		{"throughput", "clients,throughput_gbps\n1,1\n2,2\n4,4\n8,4.1\n16,4\n", []string{"Gbit/s each", "best", "poly4", "skipped"},
			[]string{"  latency", "95% interval", "p99 ms", "Failed while load was held", "Failed operations", "0001-01-01", "server CPU"}},
		{"times", "jobs,wall clock time (s)\n1,60\n10,360\n", []string{"/min each", "6m", "p99 < 600s", "not measured"},
			[]string{"Gbit/s", "p99 s", "at no tested load"}},
		{"repetitions and errors", "n,ops/s,error ratio\n1,10,0\n1,11,0\n1,12,0\n2,20,3%\n2,21,3%\n2,22,3%\n", []string{"95% interval", "3%"},
			[]string{"  latency"}},
	} {
		tab, err := given.Read("t.csv", strings.NewReader(c.text), given.Options{})
		require.NoError(t, err)
		f, err := analysis.AnalyzeTable(tab, analysis.TableOptions{Boundaries: []string{"p99 < 600s"}})
		require.NoError(t, err)
		var text, page bytes.Buffer
		require.NoError(t, Text(&text, f, Options{Verbose: true}))
		require.NoError(t, HTML(&page, f, nil))
		headed(t, page.String())
		for _, want := range c.has {
			if !strings.Contains(text.String(), want) && !strings.Contains(page.String(), want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, text.String())
			}
		}
		for _, unwanted := range c.lacks {
			if strings.Contains(text.String(), unwanted) || strings.Contains(page.String(), ">"+unwanted) {
				t.Errorf("%s: %q in\n%s", c.name, unwanted, text.String())
			}
		}
	}
}
