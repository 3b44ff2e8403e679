package rigs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A linkSum has the sums of a link.
type linkSum struct {
	copies, failed   int
	verified         int64 // bytes of verified copies
	moved            int64 // bytes of links.jsonl
	logged           int64 // bytes of copies in the logs of the servers
	all, undisturbed rateSum
}

// A rateSum adds up seconds of a link.
type rateSum struct{ moved, target float64 }

func (r rateSum) ratio() float64 { return r.moved / r.target }

// settledTime is the time after a fault in which a link need not have its target.
func (p *proof) settledTime() time.Duration {
	if p.service != nil && p.service.rucio != nil {
		return 3 * time.Minute
	}
	return time.Minute
}

// disturbed reports whether a part was away shortly before a moment, or the stage has just begun.
func (p *proof) disturbed(at time.Time) bool {
	if at.Before(p.run2().Add(p.settledTime())) {
		return true
	}
	return slices.ContainsFunc(p.faults, func(f fault) bool { return !at.Before(f.from) && at.Before(f.to.Add(p.settledTime())) })
}

// run2 returns the begin of the second stage.
func (p *proof) run2() time.Time {
	if p.second.IsZero() {
		r := &running{ran: p.run, stage: p.stage}
		p.second = r.began(2)
	}
	return p.second
}

// sums reads the sums of weir and of the servers.
func (p *proof) sums() map[string]*linkSum {
	all := map[string]*linkSum{}
	for _, l := range proofLinks() {
		all[l] = &linkSum{}
	}
	p.copies(all)
	p.seconds(all)
	for _, w := range p.sites {
		p.logged(w, all)
	}
	return all
}

// copies reads transfers.jsonl: each copy has one line.
func (p *proof) copies(all map[string]*linkSum) {
	seen, failures := map[int64]bool{}, map[string]int{}
	p.must(readLines(filepath.Join(p.run.dir, "transfers.jsonl"), func(line []byte) error {
		var x struct {
			Request        int64
			Source         string
			Dest           string `json:"destination"`
			Size           int64  `json:"size_bytes"`
			Done, Verified bool
			Last           bool
			Class, Reason  string
		}
		if err := json.Unmarshal(line, &x); err != nil {
			return err
		}
		p.expect(!seen[x.Request] && x.Last, "copy %d has two lines", x.Request)
		seen[x.Request] = true
		l := all[x.Source+x.Dest]
		if !x.Done {
			l.failed++
			failures[x.Class+" "+shortReason(x.Reason)]++
			return nil
		}
		p.expect(x.Verified, "copy %d of %s%s was not verified", x.Request, x.Source, x.Dest)
		l.copies++
		l.verified += x.Size
		return nil
	}))
	for _, text := range slices.Sorted(maps.Keys(failures)) {
		p.Logf("%d copies: %s", failures[text], text)
	}
	p.begun = len(seen)
}

var digits = regexp.MustCompile(`[0-9a-f-]*[0-9][0-9a-f-]*`)

func shortReason(text string) string {
	text = digits.ReplaceAllString(text, "N")
	return text[:min(len(text), 150)]
}

// seconds reads links.jsonl: no time of a link is counted twice.
func (p *proof) seconds(all map[string]*linkSum) {
	ends := map[string]time.Time{}
	p.must(readLines(filepath.Join(p.run.dir, "links.jsonl"), func(line []byte) error {
		var x gridSecond
		if err := json.Unmarshal(line, &x); err != nil {
			return err
		}
		name := x.Source + x.Dest
		l := all[name]
		p.expect(!x.Start.Add(time.Millisecond).Before(ends[name]), "%s: the second of %s is counted twice", name, x.Start)
		ends[name] = x.Start.Add(time.Duration(x.Seconds * float64(time.Second)))
		l.moved += int64(x.Moved)
		if x.Stage < 2 || x.Target == 0 {
			return nil
		}
		l.all.add(x)
		if !p.disturbed(x.Start) {
			l.undisturbed.add(x)
		}
		return nil
	}))
	begun, done := int64(0), int64(0)
	p.must(readLines(filepath.Join(p.run.dir, "intervals.jsonl"), func(line []byte) error {
		var x struct{ Begun, Done int64 }
		err := json.Unmarshal(line, &x)
		begun, done = begun+x.Begun, done+x.Done
		return err
	}))
	copies := 0
	for _, l := range all {
		copies += l.copies
	}
	p.expect(begun == int64(p.begun), "intervals.jsonl has %d copies that began, transfers.jsonl %d", begun, p.begun)
	p.expect(done == int64(copies), "intervals.jsonl has %d copies that were done, transfers.jsonl %d", done, copies)
}

func (r *rateSum) add(x gridSecond) {
	r.moved += x.Moved
	r.target += x.Target * x.Seconds
}

var (
	xrootdCopy = regexp.MustCompile(`TPC_(Pull|Push)Request: event=TRANSFER_SUCCESS, .*remote=(http://[^/]*)/.*bytes_transferred=(\d+)`)
	weirCopy   = regexp.MustCompile(`msg="third-party copy ended" push=(true|false) .*with=([^ ]*) bytes=(\d+) error=<nil>`)
)

// logged adds the copies in the log of a server. The server that makes a copy has it in its log.
func (p *proof) logged(w *gridSite, all map[string]*linkSum) {
	text, err := os.ReadFile(w.log)
	p.must(err)
	for line := range bytes.Lines(text) {
		m := xrootdCopy.FindSubmatch(line)
		if m == nil {
			m = weirCopy.FindSubmatch(line)
		}
		if m == nil {
			continue
		}
		other := p.siteAt(strings.TrimPrefix(string(m[2]), "http://"))
		name := other + w.name
		if push := string(m[1]); push == "Push" || push == "true" {
			name = w.name + other
		}
		n, err := strconv.ParseInt(string(m[3]), 10, 64)
		p.must(err)
		if l := all[name]; l != nil {
			l.logged += n
		} else {
			p.expect(false, "the log of %s has a copy of the link %s", w.name, name)
		}
	}
}

// siteAt returns the site with a gate at an address.
func (p *proof) siteAt(address string) string {
	for _, w := range p.sites {
		if w.address == address {
			return w.name
		}
	}
	return "?"
}

// payload returns the bytes of files that a site of weir serve has received and sent.
func (p *proof) payload(w *gridSite) (in, out int64) {
	u := url.URL{Scheme: "http", Host: w.address, Path: "/metrics"}
	req, err := http.NewRequestWithContext(p.ctx, http.MethodGet, u.String(), nil)
	p.must(err)
	resp, err := http.DefaultClient.Do(req)
	p.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	p.must(err)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "weir_serve_payload_received_bytes_total":
			in, err = strconv.ParseInt(value, 10, 64)
		case "weir_serve_payload_sent_bytes_total":
			out, err = strconv.ParseInt(value, 10, 64)
		}
		p.must(err)
	}
	return in, out
}

// judge compares the sums and the rates, and looks for files that are left.
func (p *proof) judge() {
	if p.run.findings == nil {
		return
	}
	all := p.sums()
	worst := 0.0
	var ratios []float64
	p.Logf("link copies failed MB-verified MB-links.jsonl MB-servers deviation ratio undisturbed-ratio")
	for _, name := range proofLinks() {
		l := all[name]
		off := float64(l.logged-l.verified) / float64(l.logged)
		worst = max(worst, math.Abs(off))
		ratios = append(ratios, l.undisturbed.ratio())
		p.Logf("%s %5d %4d %8.2f %8.2f %8.2f %+.2f%% %.1f%% %.1f%%", name, l.copies, l.failed, mb(l.verified), mb(l.moved), mb(l.logged), 100*off,
			100*l.all.ratio(), 100*l.undisturbed.ratio())
		p.near(name+": bytes of weir and of the servers", l.verified, l.logged, l.failed)
		p.near(name+": bytes of links.jsonl and of verified copies", l.moved, l.verified, l.failed)
	}
	p.siteSums(all)
	if p.minutes >= longProof {
		p.expect(slices.Min(ratios) > 0.95 && slices.Max(ratios) < 1.05, "undisturbed, a link has %.1f to %.1f%% of its target",
			100*slices.Min(ratios), 100*slices.Max(ratios))
	}
	p.clean()
	p.Logf("RESULT %s, %v: %d copies, links at %.1f to %.1f%% of their targets undisturbed, sums of links off by at most %.2f%%",
		p.by, p.minutes, p.begun, 100*slices.Min(ratios), 100*slices.Max(ratios), 100*worst)
}

func mb(n int64) float64 { return float64(n) / 1e6 }

// longProof is the duration from which rates, and sums without the bytes of failed copies, are judged:
// the faults of a short one take a large part of it.
const longProof = 20 * time.Minute

// near expects sums that differ by at most 1%; in a short challenge also by a file, and by the copies
// that failed.
func (p *proof) near(what string, a, b int64, failed int) {
	off, most := math.Abs(float64(a-b)), 0.01*float64(b)
	if p.minutes < longProof {
		most += float64((1 + failed) * p.size)
	}
	p.expect(off <= most, "%s: %d and %d", what, a, b)
}

// siteSums compares the bytes of each site of weir serve with its own counters, in which attempts that
// failed are as well.
func (p *proof) siteSums(all map[string]*linkSum) {
	for _, w := range p.sites {
		if p.xrootd[w.name] {
			continue
		}
		in, out, failed := int64(p.sources*p.size+1024), int64(0), 0
		for name, l := range all {
			if name[1:] == w.name {
				in, failed = in+l.verified, failed+l.failed
			}
			if name[:1] == w.name {
				out, failed = out+l.verified, failed+l.failed
			}
		}
		gotIn, gotOut := p.payload(w)
		p.Logf("%s in %.2f MB of weir, %.2f MB counted by the server (%+.2f%%); out %.2f, %.2f (%+.2f%%)", w.name, mb(in), mb(gotIn),
			100*float64(gotIn-in)/float64(in), mb(out), mb(gotOut), 100*float64(gotOut-out)/float64(out))
		p.near(w.name+": bytes received", in, gotIn, failed)
		p.near(w.name+": bytes sent", out, gotOut, failed)
	}
}

// clean expects that only files of the manifest are left, and nothing after weir clean.
func (p *proof) clean() {
	manifest, err := os.ReadFile(filepath.Join(p.run.dir, "manifest.jsonl"))
	p.must(err)
	if p.service == nil || p.service.rucio == nil {
		for _, path := range p.files() {
			p.expect(strings.Contains(string(manifest), filepath.Base(path)), "%s is left and not in the manifest", path)
		}
	}
	p.Logf("%d files are left before weir clean", len(p.files()))
	p.tool(p.weir, "clean", p.run.dir)
	until := time.Now().Add(10 * time.Minute)
	for len(p.files()) > 0 && p.service != nil && p.service.rucio != nil && time.Now().Before(until) { // by the reaper
		p.sleep(time.Second)
	}
	left := p.files()
	p.expect(len(left) == 0, "%d files are left, such as %s", len(left), fmt.Sprint(left[:min(3, len(left))]))
}

// files returns the files that are left, and folders unless Rucio chooses them.
func (p *proof) files() (all []string) {
	for _, path := range p.left() {
		info, err := os.Stat(filepath.Join(p.site(path[:1]).spec.Dir, path[2:]))
		if err == nil && (!info.IsDir() || p.service == nil || p.service.rucio == nil) {
			all = append(all, path)
		}
	}
	return all
}
