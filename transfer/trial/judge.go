package trial

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/transfer"
	"weir/transfer/record"
)

// collect determines the outcome of the files, from the manifests and by reading each file again at
// its destination.
func (s *scene) collect(ctx context.Context, r *Result) error {
	c, err := s.t.Client()
	if err != nil {
		return err
	}
	end, files := s.begin, map[string]File{}
	for _, f := range s.files {
		files[f.Name] = f
	}
	for _, id := range s.ids {
		m, err := c.Manifest(ctx, id)
		if err != nil {
			return err
		}
		r.Status[m.Request.Status]++
		if m.Request.Ended.After(end) {
			end = m.Request.Ended
		}
		for _, i := range m.Items {
			if err := s.there(&m.Request, &i, files[i.Name]); err != nil {
				r.problem("%v", err)
			}
			if i.State == transfer.Done || i.State == transfer.Skipped {
				r.Arrived++
				r.From[i.Source]++
				r.Ends = append(r.Ends, i.Ended.Sub(s.begin).Seconds())
			} else {
				name := i.Name
				if len(s.c.To) > 1 {
					name += " at " + m.Request.To
				}
				r.Named[name] = i.Reason
			}
		}
	}
	slices.Sort(r.Ends)
	r.Seconds = end.Sub(s.begin).Seconds()
	if line := s.t.locked(); line != "" {
		r.problem("the coordinator's log: %s", line)
	}
	return nil
}

// there checks that a file is complete at its destination if it has arrived, and does not exist
// there otherwise.
func (s *scene) there(r *transfer.Request, i *transfer.Item, f File) error {
	if i.State == transfer.Done || i.State == transfer.Skipped {
		return s.t.Right(r.To, f)
	}
	if _, err := os.Lstat(filepath.Join(s.t.Root(r.To), filepath.FromSlash(i.Name))); err == nil {
		return fmt.Errorf("%s has not arrived by the manifest, and is there", i.Name)
	}
	return nil
}

func (r *Result) problem(format string, a ...any) {
	if len(r.Problems) < 20 {
		r.Problems = append(r.Problems, fmt.Sprintf(format, a...))
	}
}

// locked returns a line of the coordinator's log about a database that was locked or busy, or "" if
// the log has no such line.
func (t *Trial) locked() string {
	log, err := os.ReadFile(filepath.Join(t.dir, "coordinator.log"))
	if err != nil {
		return "" // it logs elsewhere
	}
	for line := range strings.Lines(string(log)) {
		low := strings.ToLower(line)
		if strings.Contains(low, "locked") || strings.Contains(low, "sqlite_busy") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// judge compares the result with the expectations.
func (s *scene) judge(r *Result) {
	e := &s.c.Expect
	if n := r.Status[e.Status]; n != r.Requests {
		r.problem("%s", r.statusText())
	}
	if !e.Arrived.has(r.Arrived) {
		r.problem("%s arrived", say.Plural(r.Arrived, "file"))
	}
	if e.Named.Given && !e.Named.has(len(r.Named)) {
		r.problem("%s were named", say.Plural(len(r.Named), "file"))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Named)) {
		if reason := r.Named[name]; reason == "" || !strings.Contains(reason, e.Reason) {
			r.problem("%s is named with the reason %q", name, reason)
		}
	}
	for _, site := range slices.Sorted(maps.Keys(e.From)) {
		if !e.From[site].has(r.From[site]) {
			r.problem("%d came from %s", r.From[site], site)
		}
	}
	if len(s.pending) > 0 {
		r.problem("all had ended before site %s was to be switched", s.pending[0].Off+s.pending[0].On)
	}
}

// statusText describes the final statuses of the requests.
func (r *Result) statusText() string {
	var parts []string
	for _, st := range slices.Sorted(maps.Keys(r.Status)) {
		text := string(st)
		if r.Requests > 1 {
			text = fmt.Sprintf("%d %s", r.Status[st], st)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// Text describes the result, in the format of Expect.Text.
func (r *Result) Text() string {
	parts := []string{r.statusText(), fmt.Sprintf("%d arrived", r.Arrived)}
	if len(r.Named) > 0 {
		parts = append(parts, fmt.Sprintf("%d named", len(r.Named)))
	}
	if len(r.From) > 1 || len(r.Case.Expect.From) > 0 {
		for _, name := range slices.Sorted(maps.Keys(r.From)) {
			parts = append(parts, fmt.Sprintf("%d from %s", r.From[name], name))
		}
	}
	return strings.Join(parts, ", ")
}

// A Row is the result of a case in the format of tables and JSON.
type Row struct {
	Scenario string            `json:"scenario"`
	Test     string            `json:"seed_test,omitempty"`
	Case     string            `json:"case"`
	Files    int               `json:"files"`
	Size     int64             `json:"size_bytes"`
	Requests int               `json:"requests"`
	Expected string            `json:"expected"`
	Outcome  string            `json:"outcome"`
	Arrived  int               `json:"arrived"`
	Named    map[string]string `json:"named,omitempty"`
	From     map[string]int    `json:"from,omitempty"`
	Seconds  float64           `json:"duration_seconds"`
	Rate     float64           `json:"throughput_bytes_per_second"`
	Peak     float64           `json:"peak_bytes_per_second"` // within a second
	Spread   float64           `json:"spread_seconds"`        // from the arrival of the first file to the arrival of the last file
	Hosts    map[string]Usage  `json:"hosts"`                 // main (the coordinator) and the sites
	Sources  []record.Source   `json:"sources"`
	Added    []Added           `json:"added,omitempty"` // requests that were added one by one
	Problems []string          `json:"problems,omitempty"`
	Run      string            `json:"run,omitempty"` // run directory

	to []string
}

// Rows returns the results of a Play as rows.
func (p *Play) Rows(results []Result) (rows []Row) {
	for i := range results {
		r := &results[i]
		row := Row{
			Scenario: p.Scenario.Name, Test: p.Scenario.Test, Case: r.Case.Name, Files: r.Case.Files, Size: r.Size, Requests: r.Requests,
			Expected: r.Case.Expect.Text(), Outcome: r.Text(), Arrived: r.Arrived, Named: r.Named, From: r.From, Seconds: r.Seconds,
			Rate: float64(r.Arrived) * float64(r.Size) / max(r.Seconds, 1e-9), Problems: r.Problems, Run: p.Out,
			Peak: r.Peak, Hosts: r.Usage, Sources: r.Sources, Added: r.Added, to: r.Case.To,
		}
		if n := len(r.Ends); n > 0 {
			row.Spread = r.Ends[n-1] - r.Ends[0]
		}
		rows = append(rows, row)
	}
	return rows
}
