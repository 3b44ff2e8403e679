package analysis

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/links"
	"weir/loadtest/results"
)

// writeChallenge writes challenge.csv and challenge-minutes.csv of a data challenge into dir.
func writeChallenge(dir string, f *Findings, s *Series) error {
	return errors.Join(results.WriteFile(dir, results.ChallengeCSVFile, func(w io.Writer) error { return ChallengeCSV(w, f.Challenge) }),
		results.WriteFile(dir, results.ChallengeMinutesFile, func(w io.Writer) error { return ChallengeMinutesCSV(w, s) }))
}

// linkNames are the columns of challenge.csv. Each name contains its unit.
const linkNames = `source destination target_bytes_per_second achieved_bytes_per_second achieved_low_bytes_per_second
achieved_high_bytes_per_second achieved_ratio level_achieved_ratio within_ratio minutes minutes_below files arrived_bytes failed_copies
failures expired retries scitag labeled in_flight queued
queue_p50_seconds queue_p99_seconds transfer_p50_seconds transfer_p99_seconds verification_p50_seconds verification_p99_seconds
whole_p50_seconds whole_p99_seconds cause detail site certainty cause_text`

// ChallengeCSV writes the links of a data challenge, the worst first, one line for each. The name of
// each column contains its unit.
func ChallengeCSV(w io.Writer, c *links.Challenge) error {
	t := &csvTable{out: csv.NewWriter(w)}
	t.names(linkNames)
	for l := range basics.Each(c.Links) {
		cells := []any{l.Source, l.Dest, l.Target, l.Achieved, l.Low, l.High, l.Ratio, l.Level, l.Within, l.Minutes, l.Below, l.Files, l.Bytes,
			l.Failed, failureCell(l.Failures), l.Expired, l.Retries, l.SciTag, l.Labeled, l.Flight, l.Queued}
		for _, p := range []*links.Phase{l.Queue, l.Transfer, l.Verify, l.Whole} {
			if p == nil {
				cells = append(cells, nil, nil)
				continue
			}
			cells = append(cells, p.P50, p.P99)
		}
		if x := l.Cause; x != nil {
			cells = append(cells, string(x.Kind), x.Detail, x.Site, string(x.Certainty), x.Fact.Text)
		} else {
			cells = append(cells, nil, nil, nil, nil, nil)
		}
		t.line(cells...)
	}
	return t.end()
}

// failureCell lists failures by class and end: "denied at the source: 12; timeout: 3".
func failureCell(all []links.Failure) string {
	var parts []string
	for _, x := range all {
		end := ""
		if x.End == links.EndSource || x.End == links.EndDest {
			end = " at the " + x.End
		}
		parts = append(parts, fmt.Sprintf("%s%s: %d", x.Class, end, x.Copies))
	}
	return strings.Join(parts, "; ")
}

// ChallengeMinutesCSV writes the minutes of the links of a data challenge, link by link. The name of
// each column contains its unit.
func ChallengeMinutesCSV(w io.Writer, s *Series) error {
	t := &csvTable{out: csv.NewWriter(w)}
	t.names("source destination time measured_seconds target_bytes_per_second achieved_bytes_per_second in_flight queued " +
		"failed_copies below cause")
	for l := range basics.Each(s.Links) {
		for p := range basics.Each(l.Points) {
			below := 0
			if p.Below {
				below = 1
			}
			t.line(l.Source, l.Dest, s.Start.Add(basics.Duration(p.At)).UTC().Format(time.RFC3339), p.Seconds, p.Target, p.Achieved,
				p.Flight, p.Queued, p.Failed, below, string(p.Kind))
		}
	}
	return t.end()
}
