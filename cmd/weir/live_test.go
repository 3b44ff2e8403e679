package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"weir/measure"
	"weir/monitor"
	"weir/scenario"
	"weir/storage"
)

// The table fits into a terminal of 80 columns, tells both sides' share of
// their machines over the whole step, and shows foreign text as text.
func TestLiveTable(t *testing.T) {
	var out bytes.Buffer
	l := newLive(t.Context(), &out, &scenario.Plan{Name: "x", Target: "http://x", Steps: make([]scenario.Step, 2)}, series{})
	l.start("runs/x", 1)
	l.load()
	at := time.Unix(1e9, 0)
	for i := range 3 { // half and, in the last second, all of two cores; two server processes
		user := 1.0
		if i == 2 {
			user = 2
		}
		sample := monitor.Sample{Host: "here", Seconds: 1, Cores: 2, Procs: []monitor.Proc{
			{Role: "server", User: user / 2}, {Role: "server", System: user / 2}, {Role: "client", User: .1},
		}}
		interval := measure.Interval{Start: at.Add(time.Duration(i) * time.Second), Seconds: 1, Step: 1, Phase: measure.Hold,
			Clients: 100_000, Moved: 123_456_789_012, Done: 1_000_000, Failed: map[storage.Class]int64{storage.Busy: 100_000}}
		interval.Latency.Record(1234 * time.Millisecond)
		if err := l.Sample(&sample); err != nil {
			t.Fatal(err)
		}
		if err := l.Interval(&interval); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Event(measure.Event{Kind: "error", Class: storage.Other, Text: "bad\x1b[31m\nname"}); err != nil {
		t.Fatal(err)
	}
	l.end()
	said := out.String()
	for _, want := range []string{"other: bad?[31m name\n", " 67% ", "   5%\n", " 300000 "} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in\n%s", want, said)
		}
	}
	_, table, _ := strings.Cut(said, "measuring into")
	for line := range strings.Lines(table) {
		if len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}
