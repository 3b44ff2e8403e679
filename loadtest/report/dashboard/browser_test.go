package dashboard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/lab/browser"
	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
	"weir/storage"
	"weir/web"
)

// markup is a name that would run a script if it were anything but text.
const markup = `<img src=x onerror="document.title='run'">`

// Names from outside are shown as text, on phones and on large screens, in light and dark mode; the
// page survives a reload and the loss of its server.
func TestPageInBrowser(t *testing.T) {
	bundled(t)
	run := begin(t, t.TempDir())
	conf := Config{Dir: run.dir, Listen: "127.0.0.1:0"}
	s, err := Open(t.Context(), conf, nil)
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	p := browser.Open(t, s.URL(), 1600, 1000)
	p.Wait(`document.querySelector(".state")?.textContent.includes("no load yet")`)
	for i := range 12 {
		hostile(run, i)
	}
	p.Wait(points("throughput", 12))
	p.Wait(`document.querySelectorAll("#time-stores, #time-errors, #time-cpu, #time-network").length === 4`)
	p.Wait(`document.querySelector(".verdict").textContent.length > 30 && document.querySelector(".says figure")`)
	p.Wait(`document.querySelector(".says .meta").textContent.startsWith("Based on the first")`)
	for _, name := range []string{"Hosts", "Data servers", "Errors", "Events"} {
		var text string
		if p.Eval(`document.querySelector("[role=region][aria-label='`+name+`']").textContent`, &text); !strings.Contains(text, "<img src=x") {
			t.Errorf("%s: %q", name, text)
		}
	}
	var images, title = 0, ""
	p.Eval(`document.querySelectorAll("img, main script, iframe").length`, &images)
	if p.Eval(`document.title`, &title); images > 0 || title == "run" {
		t.Errorf("%d elements came from names, title %q", images, title)
	}
	p.Fits(1600)
	p.Headings()
	p.Picture("live-1600")

	p.Reload()
	p.Wait(points("throughput", 12))
	hostile(run, 12)
	p.Wait(points("throughput", 13))

	at := s.listener.Addr().String()
	require.NoError(t, s.Close())
	p.Wait(`document.querySelector(".wire.lost")?.textContent.includes("connection lost, retrying")`)
	hostile(run, 13)
	conf.Listen = at
	if s, err = Open(t.Context(), conf, nil); err != nil {
		t.Fatal(err)
	}
	p.Wait(`!document.querySelector(".wire.lost")`)
	p.Wait(points("throughput", 14))

	p.Show(browser.Dark())
	p.Resize(400, 900)
	p.Wait(`innerWidth === 400 && document.querySelector("#time-throughput .chart-plot").clientWidth < 400`)
	p.Fits(400)
	p.Picture("live-400-dark")
	p.Silent("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE")
}

// hostile writes a second in which all names are malicious.
func hostile(run *pen, i int) {
	for _, server := range []string{"a:1", markup} {
		iv := run.interval(server)
		iv.Failed = map[storage.Class]int64{storage.Timeout: int64(i % 3), storage.Refused: 1}
		run.check(run.w.Interval(iv))
	}
	run.check(run.w.Event(measure.Event{Time: run.at, Kind: measure.EventError, Step: 1, Text: markup + "\x1b[31m\u202e" +
		strings.Repeat("long ", 60), Class: storage.Timeout}))
	run.at = run.at.Add(time.Second)
	for _, host := range []string{"h", markup} {
		run.check(run.w.Sample(&monitor.Sample{Time: run.at, Seconds: 1, Host: host, Role: "server", Cores: 2,
			CPU:  &monitor.CPU{User: 0.5, Idle: 0.5},
			Nets: []monitor.Net{{Name: "eth0", Received: 1e6, Sent: 2e6}}, Procs: []monitor.Proc{{Name: "d", Role: "server", User: 0.4}}}))
	}
}

// points returns a condition that is true when a chart has so many points.
func points(chart string, n int) string {
	return fmt.Sprintf(`document.querySelector("#time-%s")?.dataset.points === "%d"`, chart, n)
}

// An hour of seconds is shown completely, and the value that a chart shows under the pointer is the
// value of the run at that time.
func TestHourInBrowser(t *testing.T) {
	bundled(t)
	tier.Slow(t, "follows an hour of a run")
	dir := t.TempDir()
	hour := resultstest.Large{Seconds: 3600, Steps: 20, Servers: 4, Loaders: 2, Stores: 4, Cores: 2}
	require.NoError(t, hour.Write(dir))
	run, err := results.Open(dir)
	require.NoError(t, err)
	_, series, err := analysis.AnalyzeWithSeries(run)
	require.NoError(t, err)
	s := serving(t, Config{Dir: dir})
	p := browser.Open(t, s.URL(), 1600, 1000)
	p.Wait(points("throughput", len(series.Points)))
	p.Wait(`document.querySelector(".verdict").textContent.length > 30`)
	var cost map[string]string
	p.Eval(`Object.assign({}, document.body.dataset)`, &cost)
	t.Logf("first picture after %s ms, one takes %s ms", cost["first"], cost["draw"])

	at := map[string]string{}
	for i := range series.Points {
		x := &series.Points[i]
		at[unit.Seconds(x.At)] += unit.Bits(x.Throughput) + ","
	}
	box := p.Box("#time-throughput .u-over")
	for _, share := range []float64{0.01, 0.31, 0.5, 0.77, 0.99} {
		p.Move(box.X+box.Width*share, box.Y+box.Height/2)
		p.Wait(`document.querySelector("#time-throughput .chart-box-head")?.textContent`)
		var said []string
		p.Eval(`[document.querySelector("#time-throughput .chart-box-head").textContent, document.querySelector("#time-throughput .chart-box-row b").textContent]`, &said)
		if want := at[said[0]]; !strings.Contains(want, said[1]) || said[1] == "" {
			t.Errorf("at %s the chart says %q; the run has %q", said[0], said[1], want)
		}
	}
	p.Eval(`document.querySelector("#time-throughput .chart-plot").focus()`, nil)
	p.Keys(browser.Right)
	p.Wait(`document.querySelector("#time-throughput .unseen[aria-live]").textContent.includes("bit/s")`)
	p.Silent()
}

// The plots show the hosts that the user chooses.
func TestChoosingHosts(t *testing.T) {
	bundled(t)
	dir := t.TempDir()
	require.NoError(t, (resultstest.Large{Seconds: 60, Steps: 3, Servers: 12, Loaders: 2, Stores: 12, Cores: 1}).Write(dir))
	s := serving(t, Config{Dir: dir})
	p := browser.Open(t, s.URL(), 1600, 1000)
	drawn := `document.querySelectorAll("#time-network .legend-entry").length`
	p.Wait(drawn + ` === 5`)
	p.Press(".more")
	p.Wait(`document.querySelectorAll("[aria-label=Hosts] tbody tr").length === 14`)
	p.Press(`[aria-label=Hosts] input:not(:checked)`)
	p.Wait(`document.querySelectorAll("[aria-label=Hosts] input:checked").length === 6`)
	p.Box("#time-network") // a chart is drawn when it is visible
	p.Wait(drawn + ` === 6`)
	p.Press(`[aria-label=Hosts] input:checked`)
	p.Box("#time-network")
	p.Wait(drawn + ` === 5`)
	p.Silent()
}

// The page without scripts has the plots as pictures, and reloads itself.
func TestPlainPage(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, resultstest.Typical().Write(dir))
	s := serving(t, Config{Dir: dir})
	text := func() string { return body(t, response(s.http.Handler, "GET", "/plain", nil)) }
	for end := time.Now().Add(patience); !strings.Contains(text(), "<svg"); {
		if time.Now().After(end) {
			t.Fatal(text())
		}
	}
	p := browser.Open(t, s.URL()+"plain", 400, 800, browser.Still())
	p.Wait(`document.querySelectorAll("svg").length > 5 && document.querySelectorAll("tbody tr").length === 9`)
	p.Fits(400)
	p.Headings()
	p.Picture("live-plain-400")
	p.Silent()
}

// A browser that follows an external link with the token is admitted, and the token does not remain
// in the address; without the token the page stays closed.
func TestTokenInBrowser(t *testing.T) {
	bundled(t)
	s := serving(t, Config{Dir: t.TempDir(), Token: "0123456789abcdef"})
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<link rel="icon" href="data:,"><a id="in" href="%s">in</a>`, s.URL())
	}))
	defer elsewhere.Close()
	p := browser.Open(t, strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1), 800, 600)
	p.Press("#in")
	p.Wait(`document.querySelector(".state")?.textContent.startsWith("Waiting")`)
	var at string
	if p.Eval(`location.href`, &at); at != strings.Split(s.URL(), "?")[0] {
		t.Errorf("the page is at %s", at)
	}
	p.Reload()
	p.Wait(`document.querySelector(".state")?.textContent.startsWith("Waiting")`)
	p.Silent()
	shut := browser.Open(t, strings.Split(s.URL(), "?")[0], 800, 600)
	shut.Wait(`document.body.textContent.includes("Open the whole address that weir printed")`)
}

// bundled skips a test of the page's scripts if weir was built without them.
func bundled(t *testing.T) {
	t.Helper()
	if _, ok := web.Bundle("live.js"); !ok {
		tier.Without(t, "scripts of the pages", web.Missing)
	}
}
