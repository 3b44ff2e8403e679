package dashboard

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/analysis/campaign"
	"weir/loadtest/results/resultstest"
)

// The number of pages is limited; a further page receives the reason for the refusal, and gets the
// place of a page that leaves.
func TestTooManyPages(t *testing.T) {
	run := begin(t, t.TempDir())
	s := serving(t, Config{Dir: run.dir})
	var all []*reader
	for range mostPages {
		r := connect(t, s, nil, "")
		r.until("anything", func() bool { return true })
		all = append(all, r)
	}
	resp, err := http.Get(s.URL() + "events")
	require.NoError(t, err)
	text := body(t, resp)
	resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "pages are open") {
		t.Errorf("%s: %s", resp.Status, text)
	}
	run.seconds(1)
	for _, r := range all {
		r.until("the second", func() bool { return len(r.at) == 1 })
	}
}

// A page that reads nothing holds up no other page, and does not prevent the server from closing.
func TestStuckPage(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	dir := t.TempDir()
	run := begin(t, dir)
	s := serving(t, Config{Dir: dir})
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.(*net.TCPConn).SetReadBuffer(4096))
	if _, err := fmt.Fprintf(c, "GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	p := connect(t, s, nil, "")
	for i := range 5 {
		run.seconds(100)
		p.until("the seconds", func() bool { return len(p.at) == 100*(i+1) })
	}
}

// The page of a campaign continues with the next run by itself, and can show earlier runs.
func TestCampaign(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	dir := t.TempDir()
	c := &campaign.Campaign{Name: "logins", Repeat: 1, Factors: []campaign.Factor{{Key: "auth.method", Levels: []string{"none", "krb5"}}},
		Runs: []campaign.Run{
			{Number: 1, Block: 1, Variant: "a", Levels: map[string]string{"auth.method": "none"}, Dir: "001-a"},
			{Number: 2, Block: 1, Variant: "b", Levels: map[string]string{"auth.method": "krb5"}, Dir: "002-b"}}}
	require.NoError(t, campaign.Write(dir, c))
	s := serving(t, Config{Dir: dir})
	p := connect(t, s, nil, "")
	p.until("nothing", p.state(waiting))
	first := begin(t, filepath.Join(dir, "001-a"))
	first.seconds(2)
	p.until("the first run", func() bool { return len(p.at) == 2 })
	first.event("end", "all steps done")
	first.check(first.w.Close())
	p.until("its end", p.state(ended))

	second := begin(t, filepath.Join(dir, "002-b"))
	second.seconds(3)
	p.until("the second run", func() bool { return len(p.at) == 3 && strings.HasSuffix(p.run.Dir, "002-b") && len(p.runs) == 2 })
	if p.runs[0].Name != "run 1 of 2, none" || p.runs[1].Name != "run 2 of 2, krb5" {
		t.Errorf("%+v", p.runs)
	}
	back := connect(t, s, url.Values{"run": {p.runs[0].Key}}, "")
	back.until("the first run", func() bool { return len(back.at) == 2 && back.last.Now.State == ended })
	if none := connect(t, s, url.Values{"run": {"../.."}}, ""); !none.read() || !strings.Contains(none.gone, "no such run") {
		t.Errorf("%+v %s", none.last, none.gone)
	}
}

// In a folder of runs the newest is shown; links and other files are not.
func TestFolderOfRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serving(t, Config{Dir: filepath.Join(dir, "runs")})
	p := connect(t, s, nil, "")
	p.until("nothing", p.state(waiting))
	for i, name := range []string{"z-1", "a-2"} {
		run := begin(t, filepath.Join(dir, "runs", name))
		run.seconds(i + 1)
		p.until(name, func() bool { return len(p.at) == i+1 && strings.HasSuffix(p.run.Dir, name) })
	}
	for _, err := range []error{os.Symlink("a-2", filepath.Join(dir, "runs", "latest")),
		os.Mkdir(filepath.Join(dir, "runs", "empty"), 0o700)} {
		require.NoError(t, err)
	}
	s.hub.scan(s.ctx)
	if list, _, newest, _ := s.hub.choice(); len(list) != 2 || newest.key != "a-2" {
		t.Errorf("%+v, newest %s", list, newest.key)
	}
}

// Earlier runs are dropped after their pages leave, and only so many runs are followed.
func TestLookingBack(t *testing.T) {
	tier.Slow(t, "follows a long run")
	dir := t.TempDir()
	for i := range mostPast + 3 {
		require.NoError(t, resultstest.Typical().Write(filepath.Join(dir, fmt.Sprint("run-", i))))
	}
	s := serving(t, Config{Dir: dir})
	var held []*shown
	refused := 0
	for i := range mostPast + 3 {
		run, err := s.hub.get(s.ctx, fmt.Sprint("run-", i))
		if err != nil {
			refused++
			continue
		}
		held = append(held, run)
	}
	if len(held) > mostPast+2 || refused == 0 {
		t.Errorf("%d are followed, %d refused", len(held), refused)
	}
	for _, run := range held {
		run.leave()
	}
	if run, err := s.hub.get(s.ctx, fmt.Sprint("run-", mostPast+1)); err != nil {
		t.Error(err)
	} else {
		run.leave()
	}
}

// An analysis is made when a step has ended, at intervals, and when the run is over; never so often
// that it costs more than a few percent of a core.
func TestWhenToAnalyze(t *testing.T) {
	now := resultstest.Start()
	s := newShown("", "", func() time.Time { return now })
	check := func(what string, last *look, want bool) look {
		t.Helper()
		seen, due := s.due(last)
		if due != want {
			t.Errorf("%s: %v", what, due)
		}
		return seen
	}
	var last look
	check("nothing is there", &last, false)
	run := begin(t, t.TempDir())
	run.check(run.w.Close())
	s.about = &resultsAbout{}
	s.enter()
	check("no seconds", &last, false)
	for range 5 {
		s.h.interval(run.interval("a"))
		run.at = run.at.Add(time.Second)
	}
	last = check("five seconds", &last, true)
	last.cost = time.Second
	check("nothing new", &last, false)
	s.h.interval(run.interval("a"))
	now = now.Add(leastGap)
	check("too early for what it costs", &last, false)
	now = last.at.Add(gapOfCost * last.cost)
	check("now and then", &last, true)
	last.steps-- // as if a step had begun
	now = last.at.Add(stepOfCost * last.cost)
	check("a step", &last, true)
	s.over = true
	now = last.at.Add(time.Second)
	last = check("the end", &last, true)
	check("after the end", &last, false)
	s.over = false
	s.leave()
	now = now.Add(2 * recently)
	s.h.interval(run.interval("b"))
	check("nobody looks", &last, false)
}

// Closing the server does not wait for pages.
func TestSettle(t *testing.T) {
	run := begin(t, t.TempDir())
	s := serving(t, Config{Dir: run.dir})
	s.Settle(t.Context()) // no page is open
	p := connect(t, s, nil, "")
	p.until("preparation", p.state(preparing))
	short, stop := context.WithCancel(t.Context())
	stop()
	s.Settle(short)
	run.seconds(5)
	run.event("end", "all steps done")
	run.check(run.w.Close())
	s.Settle(t.Context())
	p.until("the result", func() bool { return p.found != nil && p.found.Final })
}

// A link such as runs/latest is resolved again at every scan.
func TestLatest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "latest")
	s := serving(t, Config{Dir: link})
	p := connect(t, s, nil, "")
	p.until("nothing", p.state(waiting))
	for i, name := range []string{"a", "b"} {
		run := begin(t, filepath.Join(dir, name))
		run.seconds(3 - i)
		_ = os.Remove(link) // it may not exist
		run.check(os.Symlink(name, link))
		p.until(name, func() bool { return strings.HasSuffix(p.run.Dir, name) && len(p.at) == 3-i })
	}
}

// A long analysis is interrupted when the command waits for it, and repeated at the usual priority.
func TestSettleHurries(t *testing.T) {
	run := begin(t, t.TempDir())
	gently := make(chan struct{}, 1)
	s, err := Open(t.Context(), Config{Dir: run.dir, Listen: "127.0.0.1:0"}, func(ctx context.Context, _ string, m Moment) (*Found, error) {
		if m.Awaited {
			return &Found{Headline: "quick"}, nil
		}
		gently <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	p := connect(t, s, nil, "")
	run.seconds(1)
	run.event("end", "all steps done")
	run.check(run.w.Close())
	<-gently
	s.Settle(t.Context())
	p.until("the result", func() bool { return p.found != nil && p.found.Headline == "quick" && p.found.Final })
}
