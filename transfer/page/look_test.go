package page_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/tier"
	"weir/lab/browser"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/web"
)

const gb = 1 << 30

// busy adds the requests of a day at a data center.
func busy(p *pretender) {
	now := time.Now()
	p.sites = []catalog.Site{
		{Name: "CERN", Kind: "agent", URL: "https://se01.cern.example:8443", Free: 412 << 40, Seen: now, Up: true, Max: 50},
		{Name: "FNAL", Kind: "http", URL: "https://cmsdata.fnal.example:1094/store", Free: -1, Seen: now, Up: true},
		{Name: "DESY", Kind: "agent", Free: 88 << 40, Seen: now, Up: true},
		{Name: "RAL", Kind: "agent", URL: "https://xrootd.ral.example:8443", Free: 3 << 40, Seen: now.Add(-4 * time.Minute),
			Problem: "its agent was not heard of for 4 minutes"},
	}
	for i := range 5 {
		p.datasets = append(p.datasets, catalog.Dataset{Name: fmt.Sprintf("/store/data/Run2026%c/Muon/RAW", 'A'+i), Blocks: 3 + i,
			Files: int64(1200 * (i + 1)), Bytes: int64(i+1) * 2400 * gb,
			At: map[string]int64{"CERN": int64(1200 * (i + 1)), "DESY": int64(400 * i)}})
	}
	add := func(ds int, to string, status transfer.Status, c transfer.Counts, rate float64) {
		r := transfer.Request{ID: int64(len(p.requests) + 1), Submission: transfer.Submission{Dataset: p.datasets[ds].Name, To: to},
			Status: status, By: "ann@cern.example", Made: now.Add(-time.Duration(20-len(p.requests)) * 7 * time.Minute), Count: c, Rate: rate}
		r.Asked = transfer.Requested{Files: c.Files, Bytes: c.Bytes}
		if status == transfer.Awaiting {
			r.Count = transfer.Counts{} // its files are resolved after approval
		} else {
			r.Decided, r.Began = "bob@cern.example", r.Made.Add(time.Minute)
		}
		if status.Ended() {
			r.Ended = r.Began.Add(11 * time.Minute)
		}
		p.requests = append(p.requests, r)
	}
	add(0, "DESY", transfer.Completed, transfer.Counts{Files: 1200, Bytes: 2400 * gb, Done: 1190, Skipped: 10, DoneBytes: 2400 * gb,
		Attempts: 1204}, 0)
	add(1, "RAL", transfer.Partial, transfer.Counts{Files: 10, Bytes: 10 * gb, Done: 8, Failed: 2, DoneBytes: 8 * gb, Attempts: 18}, 0)
	add(2, "FNAL", transfer.Running, transfer.Counts{Files: 3600, Bytes: 7200 * gb, Done: 1430, Skipped: 200, Leased: 40, Queued: 1900,
		NoSource: 20, Failed: 10, DoneBytes: 3260 * gb, Attempts: 1500}, 1.15e9)
	add(3, "DESY", transfer.Running, transfer.Counts{Files: 4800, Bytes: 9600 * gb, Done: 90, Leased: 12, Queued: 4698, DoneBytes: 180 * gb,
		Attempts: 93}, 4.2e8)
	add(4, "CERN", transfer.Awaiting, transfer.Counts{Files: 6000, Bytes: 12000 * gb, Queued: 6000}, 0)
	p.links = []transfer.Link{
		{Source: "CERN", Dest: "FNAL", Active: 40, Limit: 40, Why: "raised from 36: all of the last 200 copies succeeded and the rate " +
			"still grew by 8%", Rate: 1.15e9, Success: 1},
		{Source: "CERN", Dest: "DESY", Active: 12, Limit: 12, Why: "held: the rate did not grow with the last copy more", Rate: 4.2e8,
			Success: 0.98},
		{Source: "RAL", Dest: "CERN", Active: 0, Limit: 2, Why: "lowered from 8: 4 of the last 20 copies failed", Rate: 0, Success: 0.8},
	}
	p.reasons = []transfer.Reason{{Files: 1900, Text: "the link CERN to FNAL has 40 copies, which is its limit"},
		{Files: 40, Text: "are moving now"}, {Files: 20, File: "/store/data/Run2026C/Muon/RAW/0099.root",
			Text: "no site that has it is up: RAL is down"}}
	p.item = func(r transfer.Request, id int64) transfer.Item {
		i := transfer.Item{ID: id, Name: fmt.Sprintf("%s/%06d.root", r.Dataset, id), Size: 2 * gb, Adler: fmt.Sprintf("%08x", 0x3a1b0000+id*7919),
			State: transfer.Queued}
		switch c := r.Count; {
		case id <= c.Failed:
			i.State, i.Tries, i.Source, i.Fault, i.Reason = transfer.FileFailed, 5, "CERN", transfer.SourceBad,
				"CERN does not have it any more (404), and no other site has it"
		case id <= c.Failed+c.Leased:
			i.State, i.Tries, i.Source, i.Stage, i.Moved = transfer.Leased, 1, "CERN", transfer.Moving, id*37%100*gb/50
		case id <= c.Failed+c.Leased+c.Done:
			i.State, i.Tries, i.Source, i.Ended = transfer.Done, 1, "CERN", now
		}
		return i
	}
	for n := range 600 {
		x := float64(n % 97)
		p.samples = append(p.samples, transfer.Sample{Time: now.Add(time.Duration(n-600) * time.Second), Seconds: 1, Cores: 64, CPU: 0.2 + x/500,
			Memory: 0.4, Total: 256 << 30, In: 1e8 + x*1e5, Out: 1.4e9 + x*1e6, Read: 1.4e9, Write: 1e8, Running: 52, MovedBytes: 1.5e9 + x*1e6})
	}
	for n := range 3 {
		p.attempts = append(p.attempts, transfer.Attempt{Item: 1, Source: "CERN", Dest: "FNAL", Mode: transfer.Third,
			Outcome: transfer.Outcome{Epoch: int64(n + 1), Fault: transfer.SourceBad, Reason: "the source answered 404 Not Found",
				Begin: now.Add(time.Duration(n-9) * time.Minute), End: now.Add(time.Duration(n-9)*time.Minute + 3*time.Second)}})
	}
}

// Every view is complete and readable, on wall displays and phones, in light and dark mode.
func TestLooks(t *testing.T) {
	t.Parallel()
	bundled(t)
	for _, c := range []struct {
		name  string
		width int
		dark  bool
	}{{"wide", 1500, false}, {"phone", 400, false}, {"dark", 1100, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			look(t, c.name, c.width, c.dark)
		})
	}
}

func look(t *testing.T, name string, width int, dark bool) {
	s := pretend(t)
	busy(s)
	var options []browser.Option
	if dark {
		options = append(options, browser.Dark())
	}
	p := browser.Open(t, s.URL+"/#code="+s.page.Code("admin:bob"), width, 900, options...)
	for _, v := range []struct{ at, ready string }{
		{"#/", `document.querySelectorAll(".card").length === 6 && document.querySelector("canvas")`},
		{"#/requests", `document.querySelectorAll("tbody tr").length === 5`},
		{"#/requests/3", `document.querySelectorAll("tbody tr").length > 5 && document.querySelector(".reasons li")`},
		{"#/datasets", `document.querySelectorAll("tbody tr").length === 5`},
		{"#/sites", `document.querySelectorAll("tbody tr").length === 4`},
		{"#/sites/CERN", `document.querySelectorAll("canvas").length === 4`},
		{"#/links", `document.querySelectorAll("tbody tr").length === 3 && document.querySelector("canvas")`},
	} {
		p.Eval(`location.hash = "`+v.at+`"`, nil)
		p.Wait(v.ready)
		p.Fits(width)
		p.Headings()
		var hidden int
		if p.Eval(`[...document.querySelectorAll("main .button")].filter((b) => b.offsetParent && b.getBoundingClientRect().right > innerWidth).length`, &hidden); hidden > 0 {
			t.Errorf("%s, %d wide: %d buttons are out of sight", v.at, width, hidden)
		}
		p.Picture(name + strings.ReplaceAll(v.at, "/", "-"))
	}
	p.Press("#new")
	p.Wait(`document.querySelector("dialog[open]")`)
	// In one call: otherwise, on a busy machine, a name that is typed slowly would be requested
	// before it is complete, and not be found.
	p.Eval(`{ const e = document.activeElement; e.value = "/store/data/Run2026B/Muon/RAW"; e.dispatchEvent(new Event("input", {bubbles: true})) }`, nil)
	p.Wait(`document.querySelector("dialog .boxes input")`)
	p.Picture(name + "-form")
	p.Keys(browser.Escape)
	p.Eval(`location.hash = "#/requests/2"`, nil)
	p.Wait(`document.querySelectorAll("tbody tr").length === 2`)
	p.Headings()
	p.Picture(name + "-partial")
	p.Press("tbody button")
	p.Wait(`document.querySelectorAll("dialog tbody tr").length === 3`)
	p.Headings()
	p.Picture(name + "-file")
	p.Keys(browser.Escape)
	p.Silent()
}

// bundled skips a test of the page's scripts if weir was built without them.
func bundled(t *testing.T) {
	t.Helper()
	if _, ok := web.Bundle("transfer.js"); !ok {
		tier.Without(t, "scripts of the pages", web.Missing)
	}
}
