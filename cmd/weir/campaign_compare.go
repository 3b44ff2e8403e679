package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"

	"weir/analysis/compare"
	"weir/report"
	"weir/results"
	"weir/run/campaign"
)

// What a campaign's folder has besides: made again whenever a campaign ends,
// and by weir report.
const (
	comparedFile = "compare"  // of variants
	repeatedFile = "repeated" // of the repetitions of one plan
)

// A summary is what the runs of a campaign show together.
type summary struct {
	file       string // its name, without the ending
	status     string // of the least valid run
	json, page func(io.Writer) error
	text       func(io.Writer, report.Options) error
}

// An incomparable campaign has runs that show nothing together.
type incomparable struct{ error }

// concludeCampaign writes and says what the runs of the campaign in dir show
// together. status is that of the least valid run.
func concludeCampaign(dir string, c *campaign.Campaign, asJSON bool, s streams) (status string, err error) {
	sum, err := summarize(dir, c)
	if err != nil {
		return "", &incomparable{err}
	}
	return sum.status, sum.conclude(dir, c, asJSON, s)
}

func (sum *summary) conclude(dir string, c *campaign.Campaign, asJSON bool, s streams) error {
	if err := results.WriteFile(dir, sum.file+".json", sum.json); err != nil {
		return err
	}
	if err := results.WriteFile(dir, sum.file+".html", sum.page); err != nil {
		return err
	}
	if s.stream != nil {
		return sum.stream(s.stream, dir)
	}
	if asJSON {
		return sum.json(s.out)
	}
	if err := sum.text(s.out, s.look()); err != nil {
		return err
	}
	if err := legend(s.out, c); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.out, "\ncampaign       %s\nreport         %s\n", dir, filepath.Join(dir, sum.file+".html"))
	return err
}

// stream tells programs what it is.
func (sum *summary) stream(to *stream, dir string) error {
	var b bytes.Buffer
	if err := sum.json(&b); err != nil {
		return err
	}
	l := streamed{Event: "comparison", Run: dir, Comparison: b.Bytes()}
	if sum.file == repeatedFile {
		l = streamed{Event: "repetitions", Run: dir, Repetitions: b.Bytes()}
	}
	to.tell(l)
	return nil
}

// legend says what each variant is where its name does not.
func legend(w io.Writer, c *campaign.Campaign) error {
	told := map[string]bool{}
	for i := range c.Runs {
		r := &c.Runs[i]
		if told[r.Variant] || len(c.Factors) == 0 || c.VariantName(r) != r.Variant {
			continue
		}
		told[r.Variant] = true
		if _, err := fmt.Fprintf(w, "%-14s %s\n", "variant "+r.Variant, line(r.Scenario)); err != nil {
			return err
		}
	}
	return nil
}

// summarize compares the variants of the campaign in dir, or sums up its runs
// if all are repetitions of one plan.
func summarize(dir string, c *campaign.Campaign) (*summary, error) {
	if len(c.Variants()) == 1 {
		g, err := campaign.Group(dir)
		if err != nil {
			return nil, err
		}
		g.Name = c.Name
		all, err := compare.Repeat(g, nil)
		if err != nil {
			return nil, err
		}
		link := func(run string) string {
			return filepath.ToSlash(filepath.Join(filepath.Base(run), results.ReportFile))
		}
		return &summary{
			file: repeatedFile, status: all.Status,
			json: all.JSON,
			page: func(w io.Writer) error { return report.RepeatedHTML(w, all, c.Name, link) },
			text: func(w io.Writer, o report.Options) error { return report.Repeated(w, all, o) },
		}, nil
	}
	groups, factors, err := campaign.VariantGroups(dir)
	if err != nil {
		return nil, err
	}
	all, err := compare.Of(groups, compare.Options{Factors: factors})
	if err != nil {
		return nil, err
	}
	return &summary{
		file: comparedFile, status: all.Status,
		json: all.JSON,
		page: func(w io.Writer) error { return report.ComparisonHTML(w, all) },
		text: func(w io.Writer, o report.Options) error { return report.Comparison(w, all, o) },
	}, nil
}
