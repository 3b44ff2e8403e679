package run

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"weir/internal/say"
	"weir/loadtest/analysis/campaign"
	"weir/loadtest/analysis/compare"
	"weir/loadtest/report"
	"weir/loadtest/results"
)

// A Summary is the common result of a campaign's runs: the comparison of its variants
// or, if there is one variant, the spread of its repetitions.
type Summary struct {
	Dir      string
	Repeated bool   // repetitions of one plan
	Status   string // of the least valid run
	JSON     []byte

	campaign *campaign.Campaign
	text     func(io.Writer, report.Options) error
}

// Summarize compares the runs of the campaign in dir, and writes compare.json and
// compare.html, or repeated.json and repeated.html, into it.
func Summarize(dir string, c *campaign.Campaign) (*Summary, error) {
	s := &Summary{Dir: dir, campaign: c, Repeated: len(c.Variants()) == 1}
	var json, page func(io.Writer) error
	if s.Repeated {
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
		s.Status, json = all.Status, all.JSON
		page = func(w io.Writer) error { return report.RepeatedHTML(w, all, c.Name, link) }
		s.text = func(w io.Writer, o report.Options) error { return report.Repeated(w, all, o) }
	} else {
		groups, factors, err := campaign.VariantGroups(dir)
		if err != nil {
			return nil, err
		}
		all, err := compare.Of(groups, compare.Options{Factors: factors})
		if err != nil {
			return nil, err
		}
		s.Status, json = all.Status, all.JSON
		page = func(w io.Writer) error { return report.ComparisonHTML(w, all) }
		s.text = func(w io.Writer, o report.Options) error { return report.Comparison(w, all, o) }
	}
	var b bytes.Buffer
	err := json(&b)
	s.JSON = b.Bytes()
	return s, errors.Join(err, results.WriteFile(dir, s.file()+".json", json), results.WriteFile(dir, s.file()+".html", page))
}

func (s *Summary) file() string {
	if s.Repeated {
		return "repeated"
	}
	return "compare"
}

// WriteText writes the tables, the scenario of each variant, and the path of the report.
func (s *Summary) WriteText(w io.Writer, o report.Options) error {
	if err := s.text(w, o); err != nil {
		return err
	}
	var b bytes.Buffer
	written := map[string]bool{}
	for i := range s.campaign.Runs {
		r := &s.campaign.Runs[i]
		if !written[r.Variant] && len(s.campaign.Factors) > 0 && s.campaign.VariantName(r) == r.Variant {
			written[r.Variant] = true
			fmt.Fprintf(&b, "%-14s %s\n", "variant "+r.Variant, say.Plain(r.Scenario))
		}
	}
	fmt.Fprintf(&b, "\ncampaign       %s\nreport         %s\n", s.Dir, filepath.Join(s.Dir, s.file()+".html"))
	_, err := w.Write(b.Bytes())
	return err
}
