package transfers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/loadtest/analysis/steps"
	"weir/loadtest/results"
)

// Files that already existed at their destination were only checked: they arrived, but no data was
// transferred, so they do not increase the throughput.
func TestFilesThatHadBeenThere(t *testing.T) {
	s := Sums{tries: map[string]int{}, ends: map[siteCase]*endSum{}}
	begin := time.Now()
	for i, mode := range []string{"check", "check", "pull"} {
		s.add(&results.Transfer{Step: 1, Case: "one", File: fmt.Sprint(i), Size: 1e9, Source: "A", Dest: "B", Mode: mode, Begin: begin,
			End: begin.Add(time.Duration(i) * time.Second), Done: true, Last: true})
	}
	s.finish(&steps.Run{})
	c := s.figures.Cases[0]
	if c.Arrived != 3 || c.There != 2 || c.Bytes != 3e9 || c.Throughput != 5e8 {
		t.Errorf("%+v", c)
	}
	if text := s.figures.Text(); !strings.Contains(text, "3 of 3 files arrived (3.00 GB) in 3 attempts; 1 case. "+
		"2 of the files already existed at the destination.") {
		t.Error(text)
	}
}
