package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/internal/say"
	"weir/loadtest/analysis/campaign"
	"weir/loadtest/results"
)

// Kinds of Listed folders.
const (
	KindRun         = "run"
	KindSearch      = "search"
	KindCampaign    = "campaign"
	KindCalibration = "calibration"
)

// Running is the status of a run that is still being written.
const Running = "running"

// A Listed is a folder of results with its verdict. Start is zero and texts are empty if they are
// unknown.
type Listed struct {
	Dir      string    `json:"dir"`
	Kind     string    `json:"kind"`
	Start    time.Time `json:"start,omitzero"`
	Name     string    `json:"name,omitempty"`
	Target   string    `json:"target,omitempty"`
	Status   string    `json:"status,omitempty"`   // valid, suspect, invalid or running
	Headline string    `json:"headline,omitempty"` // the verdict in one line
	Error    string    `json:"error,omitempty"`    // reason why the folder cannot be read
}

// List returns the results in the folder dir, the oldest first: runs, campaigns and calibrations. Of
// a campaign, it returns the runs. Symbolic links such as runs/latest are left out.
func List(dir string) ([]Listed, error) {
	if results.IsRun(dir) {
		return []Listed{listedRun(dir)}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := []Listed{}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			all = append(all, listed(filepath.Join(dir, e.Name()))...)
		}
	}
	slices.SortStableFunc(all, func(a, b Listed) int { return a.Start.Compare(b.Start) })
	return all, nil
}

// listed describes the results in dir, if it has any.
func listed(dir string) []Listed {
	switch {
	case results.IsRun(dir):
		return []Listed{listedRun(dir)}
	case campaign.Is(dir):
		return []Listed{listedCampaign(dir)}
	}
	if _, err := os.Stat(filepath.Join(dir, "calibration.json")); err == nil {
		return []Listed{listedCalibration(dir)}
	}
	return nil
}

func listedRun(dir string) Listed {
	l := Listed{Dir: dir, Kind: KindRun}
	run, err := results.Open(dir)
	if err != nil {
		l.Error = say.Plain(err.Error())
		return l
	}
	l.Start, l.Name, l.Target = run.About.Start, run.Plan.Name, run.Plan.Target
	if run.Plan.Find != nil {
		l.Kind = KindSearch
	}
	if f, err := results.Follow(dir); err == nil && !f.Over() {
		l.Status = Running
		return l
	}
	found, err := campaign.Findings(run)
	if err != nil {
		l.Error = say.Plain(err.Error())
		return l
	}
	l.Status, l.Headline = found.Validity.Status, found.Headline
	return l
}

// listedCampaign has the time and the target of the campaign's first run, and the comparison's first
// verdict.
func listedCampaign(dir string) Listed {
	l := Listed{Dir: dir, Kind: KindCampaign}
	c, err := campaign.Read(dir)
	if err != nil {
		l.Error = say.Plain(err.Error())
		return l
	}
	l.Name = c.Name
	done := 0
	for i := range c.Runs {
		run, err := results.Open(filepath.Join(dir, c.Runs[i].Dir))
		if err != nil {
			continue
		}
		if done++; done == 1 {
			l.Start, l.Target = run.About.Start, run.Plan.Target
		}
	}
	var sum struct {
		Status   string   `json:"status"`
		Verdict  string   `json:"verdict"`
		Verdicts []string `json:"verdicts"`
	}
	for _, name := range []string{"compare.json", "repeated.json"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err == nil && json.Unmarshal(b, &sum) == nil {
			break
		}
	}
	l.Status = sum.Status
	l.Headline = cmp.Or(strings.Join(append(sum.Verdicts[:min(len(sum.Verdicts), 1)], sum.Verdict), ""),
		fmt.Sprintf("%d of %d runs are done", done, len(c.Runs)))
	return l
}

func listedCalibration(dir string) Listed {
	l := Listed{Dir: dir, Kind: KindCalibration}
	var r struct {
		Target  string   `json:"target"`
		Valid   bool     `json:"valid"`
		Verdict []string `json:"verdict"`
	}
	b, err := os.ReadFile(filepath.Join(dir, "calibration.json"))
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		l.Error = say.Plain(err.Error())
		return l
	}
	if run, err := results.Open(filepath.Join(dir, "weir")); err == nil {
		l.Start, l.Name = run.About.Start, run.Plan.Name
	}
	l.Target, l.Status = r.Target, map[bool]string{true: "valid", false: "invalid"}[r.Valid]
	if len(r.Verdict) > 0 {
		l.Headline = r.Verdict[0]
	}
	return l
}

// WriteListed writes two lines for each folder: the start, the folder and the target, then the
// verdict. Lines of verdicts have at most that many columns.
func WriteListed(w io.Writer, all []Listed, columns int) error {
	var b strings.Builder
	for i := range all {
		l := &all[i]
		start := "unknown time    "
		if !l.Start.IsZero() {
			start = l.Start.Local().Format("2006-01-02 15:04")
		}
		fmt.Fprintf(&b, "%s  %s\n", start, strings.TrimSpace(say.Plain(l.Dir)+"  "+say.Plain(l.Target)))
		verdict := cmp.Or(l.Error, l.Headline)
		switch {
		case l.Status != "" && verdict != "":
			verdict = l.Status + ": " + verdict
		case l.Status != "":
			verdict = l.Status
		}
		for _, line := range say.Wrap(say.Plain(verdict), max(columns-18, 40)) {
			b.WriteString(strings.TrimRight(strings.Repeat(" ", 18)+line, " ") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
