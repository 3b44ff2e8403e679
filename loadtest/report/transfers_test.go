package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/analysis"
)

func moved() *analysis.Findings {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cpu, mean, most, share, resident := 75.5, 0.375, 0.5, 0.006, int64(36_000_000)
	return &analysis.Findings{
		Curve: []analysis.Step{{Step: 1, Clients: 2, Duration: 2}},
		Transfers: &analysis.TransferFigures{
			Cases: []analysis.TransferCase{{
				Step: 1, Case: "three \x1b[31mfiles<b>", Files: 3, Arrived: 2, Smallest: 1e9, Largest: 2e9, Bytes: 3e9, Attempts: 4,
				Failures: 2, AtOnce: 2,
				Begin: begin, End: begin.Add(2 * time.Second), Seconds: 2, Throughput: 1.5e9, SumOfFiles: 2e9, Spread: 0.5,
				Ends: []analysis.TransferEnd{
					{Site: "A", Role: "source", Moved: 3e9},
					{Site: "C", Role: "destination", Moved: 3e9, CPU: &cpu, CPUMean: &mean, CPUMax: &most, Memory: &share, Resident: &resident},
				},
			}},
			Files: []analysis.TransferFile{
				{Step: 1, File: "/f1", Size: 1e9, Source: "A", Dest: "C", Mode: "pull", Tries: 1, Done: true, Begin: begin, End: begin.Add(time.Second),
					Seconds: 1, Throughput: 1e9},
				{Step: 1, File: "/f2", Size: 2e9, Source: "A", Dest: "C", Done: true, End: begin.Add(time.Second)},
				{Step: 1, File: "/f3", Size: 2e9, Source: "A", Dest: "C", Tries: 2, End: begin.Add(time.Second), Reason: "it is \x1b[31mgone<i>"},
			},
			Missing: []analysis.TransferFile{{Step: 1, File: "/f3", Size: 2e9, Source: "A", Dest: "C", Tries: 2, End: begin.Add(time.Second),
				Reason: "it is \x1b[31mgone<i>"}},
		},
	}
}

// The seed's columns are there, in the page and in a terminal, and names are text.
func TestTransfers(t *testing.T) {
	f := moved()
	var page, text bytes.Buffer
	require.NoError(t, HTML(&page, f, nil))
	headed(t, page.String())
	require.NoError(t, Text(&text, f, Options{Verbose: true}))
	for name, want := range map[string][]string{
		page.String(): {"Transfers between sites", "2 of 3 files arrived (3.00 GB) in 4 attempts, 2 of which failed; 1 case.",
			"1 file did not arrive; the reasons are listed.", "12:00:00.000", "12:00:02.000", "1500", "12000",
			"CPU max", "50%", "37.5%", "0.6%", "1:15.50", "25.2", "all 3 (their own throughputs, summed: 2000 MB/s)", "was there", "has not arrived",
			"it is", "1.00 GB to 2.00 GB"},
		text.String(): {"1500", "12000", "1:15.50", "/f3", "it is"},
	} {
		for _, w := range want {
			if !strings.Contains(name, w) {
				t.Errorf("no %q in %s", w, name)
			}
		}
		if strings.Contains(name, "\x1b") || strings.Contains(name, "gone<i>") && strings.Contains(name, "<html") ||
			strings.Contains(name, "files<b>") && strings.Contains(name, "<html") {
			t.Error("a name is not text")
		}
	}
	if c := transferChapter(&analysis.Findings{}); len(c.Parts) > 0 {
		t.Errorf("%+v", c)
	}
}
