package reports

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
)

// recordFile lists every run that was made for a page, published or not: the last row of a run is
// that on the page.
const recordFile = "docs/reports/runs.csv"

// dataDir has NAME-findings.json and NAME-curve.csv of the runs of the pages.
const dataDir = "docs/reports/data"

// A recorded is a row of recordFile.
type recorded struct {
	run, date, took, commit, verdict, reasons string
}

func columns() []string { return []string{"run", "date", "duration", "commit", "verdict", "reasons"} }

func (r recorded) cells() []string {
	return []string{r.run, r.date, r.took, r.commit, r.verdict, r.reasons}
}

// records returns the rows of recordFile, in the order in which the runs were made.
func records(root string) (all []recorded, err error) {
	file, err := os.Open(filepath.Join(root, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) == 0 || !slices.Equal(rows[0], columns()) {
		return nil, errors.Join(fmt.Errorf("%s: want the columns %q", recordFile, columns()), err)
	}
	for _, row := range rows[1:] {
		all = append(all, recorded{row[0], row[1], row[2], row[3], row[4], row[5]})
	}
	return all, nil
}

// record appends a run to recordFile.
func record(root string, r recorded) error {
	path := filepath.Join(root, recordFile)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	w := csv.NewWriter(file)
	if info, err := file.Stat(); err == nil && info.Size() == 0 {
		_ = w.Write(columns())
	}
	_ = w.Write(r.cells())
	w.Flush()
	return errors.Join(w.Error(), file.Close())
}

var (
	measuredIn = regexp.MustCompile(`(?m)^measured +(\S+) in (\S+)`)
	concern    = regexp.MustCompile(`(?m)^ +(?:warn|fail) +([A-Za-z' ]+):`)
)

// reasons returns the checks that keep a run from being valid: of its findings, or of its output.
func reasons(dir, printed string) string {
	var f struct {
		Validity struct {
			Checks []struct{ Name, Status string }
		}
	}
	var names []string
	if text, err := os.ReadFile(filepath.Join(dir, "findings.json")); err == nil && json.Unmarshal(text, &f) == nil {
		for _, c := range f.Validity.Checks {
			if c.Status == "warn" || c.Status == "fail" {
				names = append(names, c.Name)
			}
		}
		return strings.Join(names, "; ")
	}
	for _, m := range concern.FindAllStringSubmatch(printed, -1) {
		names = append(names, m[1])
	}
	return strings.Join(names, "; ")
}

// TestData compares the published findings with the pages: a run has the verdict of its page.
func TestData(t *testing.T) {
	pages, err := readPages(root)
	require.NoError(t, err)
	for _, p := range pages {
		for _, r := range p.runs {
			text, err := os.ReadFile(filepath.Join(root, dataDir, r.name+"-findings.json"))
			if errors.Is(err, fs.ErrNotExist) {
				continue // it was made before data was published, or is a campaign
			}
			require.NoError(t, err)
			var f struct{ Validity struct{ Status string } }
			require.NoError(t, json.Unmarshal(text, &f))
			if f.Validity.Status != p.verdict(r) {
				t.Errorf("%s: its findings are %s, its page has %s", r.name, f.Validity.Status, p.verdict(r))
			}
		}
	}
}

// TestRecord compares the record of all runs with the pages: the last row of each run has the date
// and the verdict of its output.
func TestRecord(t *testing.T) {
	all, err := records(root)
	require.NoError(t, err)
	last := map[string]recorded{}
	valid, judged := 0, 0
	for _, r := range all {
		last[r.run] = r
		if slices.Contains(verdicts()[:3], r.verdict) {
			judged++
		}
		if r.verdict == "valid" {
			valid++
		}
		_, err := time.ParseDuration(r.took)
		if err != nil || !slices.Contains(verdicts(), r.verdict) || r.verdict == "suspect" && r.reasons == "" {
			t.Errorf("%+v", r)
		}
	}
	pages, err := readPages(root)
	require.NoError(t, err)
	for _, p := range pages {
		for _, r := range p.runs {
			if r.analyzes() {
				continue
			}
			m := measuredIn.FindStringSubmatch(p.output(r))
			if m == nil || last[r.name].date != m[1] || last[r.name].verdict != p.verdict(r) {
				t.Errorf("%s: the page has %q and %q, the record %+v", r.name, m, p.verdict(r), last[r.name])
			}
		}
	}
	t.Logf("%d of %d judged runs are valid", valid, judged)
}
