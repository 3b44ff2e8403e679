package dashboard

import (
	"encoding/json"
	"math"
	"net/url"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/browser"
	"weir/loadtest/challenge"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
)

// challenged returns the history of the challenge in dir.
func challenged(t *testing.T, dir string) *shown {
	t.Helper()
	f, err := results.Follow(dir)
	require.NoError(t, err)
	s := newShown(".", dir, time.Now)
	s.begin(f.Run())
	for more := true; more; {
		more, err = f.Poll(results.Takers{Interval: s.h.interval, Sample: s.h.sample, Event: s.h.event, Link: s.h.link})
		require.NoError(t, err)
	}
	return s
}

// A page has each link's last minute, the sums of all links over time, and afterwards only the links
// that have changed.
func TestPageHasTheLinks(t *testing.T) {
	c := resultstest.Rehearsal()
	dir := t.TempDir()
	require.NoError(t, c.Write(dir))
	s := challenged(t, dir)
	list := newPicks(url.Values{})
	m, has := s.message(cursor{}, list, time.Now())
	if m.Links == nil || len(m.Links.Rows) != c.Links || m.Links.Stage != 3 || len(m.Links.Sites) != c.Sites {
		t.Fatalf("%+v", m.Links)
	}
	sum := 0.0
	for i, row := range m.Links.Rows {
		source, dest := c.Ends(i)
		if m.Links.Sites[int(row[1])] != c.SiteName(source) || m.Links.Sites[int(row[2])] != c.SiteName(dest) {
			t.Errorf("link %d is %v", i, row)
		}
		want := 1.0
		if dest == c.Slow() {
			want = 0.62
		}
		if got := float64(row[4] / row[3]); math.Abs(got-want) > 0.02 {
			t.Errorf("link %d has %.2f of its target in the last minute, not %.2f", i, got, want)
		}
		sum += float64(row[3])
	}
	rates := m.Rates.Cols["target"]
	if len(rates) != 60*c.Minutes || math.Abs(float64(rates[len(rates)-1])-sum) > 1e-3*sum {
		t.Errorf("%d seconds of rates, the last target is %v of %v", len(rates), rates[len(rates)-1], sum)
	}
	s.change(func() {
		s.h.link(&results.LinkInterval{Start: resultstest.Start().Add(time.Hour), Seconds: 1, Source: "A", Dest: "B", Target: 8, Moved: 4,
			Reason: challenge.Raised})
	})
	m, _ = s.message(has, list, time.Now())
	if m.Links == nil || len(m.Links.Rows) != 1 || m.Links.Rows[0][4] != 4 || m.Links.Reasons[0] != "raised" ||
		m.Rates.From != 60*c.Minutes-2 {
		t.Errorf("afterwards: %+v, rates from %d", m.Links, m.Rates.From)
	}
}

// Bytes of copies whose verification failed are taken off, if need be off later lines.
func TestWrongBytesAreTakenOff(t *testing.T) {
	s := newShown(".", "", time.Now)
	achieved := func(second int, moved, wrong int64) float64 {
		s.change(func() {
			s.h.link(&results.LinkInterval{Start: resultstest.Start().Add(time.Duration(second) * time.Second), Seconds: 1, Source: "A", Dest: "B",
				Target: 8, Moved: moved, Wrong: wrong})
		})
		_, x := s.h.links.all[0].rate()
		return x * float64(second+1)
	}
	for i, want := range []float64{8, 8, 8, 8, 16} { // of moved bytes 8, 8, 8, 8, 8 and wrong bytes 0, 8, 16, 0, 0
		if got := achieved(i, 8, []int64{0, 8, 16, 0, 0}[i]); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v bytes in %d seconds, want %v", got, i+1, want)
		}
	}
	last := s.h.links.rates.cols[rateAchieved]
	if len(last) != 5 || last[3] != 0 || last[4] != 8 {
		t.Errorf("rates of all links: %v", last)
	}
}

// The first message of 2,000 links stays small enough to be sent each ten seconds.
func TestThousandsOfLinksStaySmall(t *testing.T) {
	s := newShown(".", "", time.Now)
	c := resultstest.Grid()
	for k := range 12 {
		for i := range c.Links {
			source, dest := c.Ends(i)
			s.h.link(&results.LinkInterval{Start: resultstest.Start().Add(time.Duration(10*k) * time.Second), Seconds: 10, Target: 2.5e8,
				Source: c.SiteName(source), Dest: c.SiteName(dest), Moved: int64(2.4e9) + int64(i), Flight: 12.5, Reason: challenge.Paced})
		}
	}
	b, err := json.Marshal(s.h.linksNow(-1))
	require.NoError(t, err)
	if len(b) > 150_000 {
		t.Errorf("%d bytes", len(b))
	}
	if n := len(s.h.links.all[0].recent); n != 6 {
		t.Errorf("a link keeps %d intervals of its last minute", n)
	}
}

// The live page shows the matrix, the worst links and the reasons of the controller, and follows
// them.
func TestLinksInBrowser(t *testing.T) {
	bundled(t)
	tier.Slow(t, "opens a browser")
	dir := t.TempDir()
	require.NoError(t, resultstest.Rehearsal().Write(dir))
	s := serving(t, Config{Dir: dir})
	p := browser.Open(t, s.URL(), 1600, 1300)
	p.Wait(`document.querySelectorAll(".matrix td[class]").length === 12`)
	var got []string
	p.Eval(`[...document.querySelectorAll(".matrix td.level3")].map((td) => td.textContent)`, &got)
	if len(got) != 2 || got[0] < "60" || got[0] > "64" {
		t.Errorf("the links of the slow disk show %q", got)
	}
	p.Wait(`document.querySelector("[aria-label=Links] tbody td").textContent.endsWith(" to C")`)
	p.Wait(`document.querySelector(".reasons").textContent.includes("links: saturated")`)
	p.Wait(points("challenge", 1800))
	p.Wait(`document.querySelector(".verdict").textContent.includes("links held")`)
	p.Fits(1600)
	p.Headings()
	p.Picture("live-challenge-1600")
	p.Show(browser.Dark())
	p.Resize(400, 900)
	p.Wait(`innerWidth === 400`)
	p.Fits(400)
	p.Picture("live-challenge-400-dark")
	p.Silent()
}

// A challenge of 2,000 links is shown as the matrix of the sites that miss the most.
func TestThousandsOfLinksInBrowser(t *testing.T) {
	bundled(t)
	tier.Slow(t, "follows 2,000 links")
	c := resultstest.Grid()
	c.Minutes = 12
	dir := t.TempDir()
	require.NoError(t, c.Write(dir))
	s := serving(t, Config{Dir: dir})
	p := browser.Open(t, s.URL(), 1600, 1300)
	p.Wait(`document.querySelectorAll(".matrix tbody tr").length === 30 && document.querySelectorAll(".matrix td[class]").length > 100`)
	p.Wait(`document.querySelector(".links .meta").textContent.includes("of 2000 links")`)
	p.Wait(`document.querySelector(".matrix thead th:nth-child(2)").textContent === "T2-02"`)
	p.Fits(1600)
	p.Picture("live-challenge-2000")
	var cost map[string]string
	p.Eval(`Object.assign({}, document.body.dataset)`, &cost)
	t.Logf("first picture after %s ms, one takes %s ms", cost["first"], cost["draw"])
	p.Silent()
}
