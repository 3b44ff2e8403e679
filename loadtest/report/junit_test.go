package report

import (
	"bytes"
	"encoding/xml"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/analysis"
)

// TestJUnit checks the counts and the results of thresholds, with text that XML must escape.
func TestJUnit(t *testing.T) {
	f := &analysis.Findings{Name: "disk", Run: "20260301-120000-abcdef", Start: time.Unix(1e9, 0),
		Validity: analysis.Validity{Status: analysis.Valid},
		Thresholds: []analysis.Judgment{{Threshold: "p99 < 1s", Met: true, Detail: "20 ms at 8 clients"},
			{Threshold: `rate > 5/s & "more"`, Detail: "3/s at <1 client"}}}
	invalid := *f
	invalid.Validity.Status = analysis.Invalid
	none := *f
	none.Thresholds = nil
	var b bytes.Buffer
	require.NoError(t, JUnit(&b, []*analysis.Findings{f, &invalid, &none},
		func(f *analysis.Findings) bool { return f.Validity.Status == analysis.Invalid }))
	var got junitFile
	require.NoError(t, xml.Unmarshal(b.Bytes(), &got))
	if len(got.Suites) != 3 {
		t.Fatalf("%d suites", len(got.Suites))
	}
	for i, want := range [][3]int{{2, 1, 0}, {2, 1, 1}, {0, 0, 0}} {
		s := &got.Suites[i]
		if (want != [3]int{s.Tests, s.Failures, s.Errors}) || len(s.Cases) != s.Tests || s.Start != "2001-09-09T01:46:40Z" {
			t.Errorf("suite %d: %+v", i, s)
		}
	}
	c := got.Suites[0].Cases
	if c[0].Name != "p99 < 1s" || c[0].Failure != nil || c[0].Error != nil || c[1].Name != f.Thresholds[1].Threshold ||
		c[1].Failure == nil || c[1].Failure.Message != "3/s at <1 client" || got.Suites[1].Cases[0].Error == nil {
		t.Errorf("%+v", got)
	}
}
