package table

import (
	"math"
	"os"
	"strings"
	"testing"

	"weir/loadtest/analysis/table/header"
)

// TestHeaders reads the headers of real tables, each with its source and the right reading: quantity,
// statistic, unit and scope. A column with the reading none or ambiguous must not be used.
func TestHeaders(t *testing.T) {
	raw, err := os.ReadFile("testdata/headers.tsv")
	if err != nil {
		t.Fatal(err)
	}
	headers, sources := map[string]bool{}, map[string]bool{}
	for number, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "source\t") {
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) < 3 || cells[0] == "" {
			t.Fatalf("line %d: %q; want source, header, reading", number+1, line)
		}
		headers[cells[1]], sources[cells[0]] = true, true
		if r := header.Parse(cells[1]); !agrees(r, cells[2]) {
			t.Errorf("line %d: %q is read as %+v, want %s", number+1, cells[1], r, cells[2])
		}
	}
	if len(headers) < 150 || len(sources) < 20 {
		t.Errorf("%d headers of %d sources", len(headers), len(sources))
	}
}

// agrees reports whether a reading is right: "none" and "ambiguous" are readings that no curve uses.
func agrees(r header.Reading, want string) bool {
	parts := strings.Fields(want)
	if len(parts) == 1 {
		k, reason := usable(r)
		return reason != "" || needsUnit(k) && r.Unit == "" || r.Factor == 0
	}
	quantity, statistic, unit, scope := header.Quantity(parts[0]), parts[1], parts[2], parts[3]
	if r.Quantity != quantity || !sameStatistic(r.Statistic, statistic) || (scope == header.PerClient) != (r.Scope == header.PerClient) {
		return false
	}
	if (unit == "-") != (r.Unit == "") && quantity != header.ErrorRatio && quantity != header.SuccessRatio {
		return false
	}
	factor := 1.0
	if unit != "-" && unit != "ratio" {
		of := quantity
		switch of {
		case header.SuccessRatio:
			of = header.ErrorRatio
		case header.Time:
			of = header.Latency
		}
		factor, _ = header.ParseUnit(unit, of)
	}
	return math.Abs(r.Factor-factor) <= 1e-9*factor
}

func sameStatistic(got, want string) bool {
	stated := want != "-" && want != "total"
	return got == want || !stated && (got == "" || got == header.Mean) || want == header.Mean && got == ""
}
