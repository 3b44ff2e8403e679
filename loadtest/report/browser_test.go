package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/lab/browser"
	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/report/figure"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
	"weir/storage"
)

// open shows the report of f and s, which has charts, in a browser.
func open(t *testing.T, f *analysis.Findings, s *analysis.Series, width, height int, options ...browser.Option) *browser.Page {
	t.Helper()
	needScript(t)
	return openFile(t, []byte(page1(t, f, s)), width, height, options...)
}

// needScript skips t if the pages have no script.
func needScript(t *testing.T) {
	t.Helper()
	if built().script == "" {
		if os.Getenv("WEIR_REQUIRE") == "all" {
			t.Fatal("weir was built without the scripts of its pages: make web builds them")
		}
		t.Skip("weir was built without the scripts of its pages: make web builds them")
	}
}

func openFile(t *testing.T, page []byte, width, height int, options ...browser.Option) *browser.Page {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	require.NoError(t, os.WriteFile(file, page, 0o644))
	return browser.Open(t, "file://"+file, width, height, options...)
}

// drawAll scrolls through the page, opens the folded parts, and returns when each plot has become a
// chart.
func drawAll(p *browser.Page) {
	p.Eval(`document.querySelectorAll("details").forEach(d => { d.open = true })`, nil)
	p.Wait(`(() => { const next = document.querySelector("figure[data-figure]:not(.charted)"); next?.scrollIntoView({block: "center"}); return !next })()`)
}

func sound(t *testing.T, p *browser.Page) {
	t.Helper()
	p.Headings()
	if e := p.Errors(); len(e) > 0 {
		t.Errorf("the page complains: %q", e)
	}
}

// number returns the index of the chart of the page that shows the figure with that id.
func number(t *testing.T, f *analysis.Findings, s *analysis.Series, id string) (int, figure.Figure) {
	t.Helper()
	i := 0
	for _, c := range runPage(f, s).Chapters {
		all := c.Charts
		for _, part := range c.Parts {
			all = append(all, part.Charts...)
		}
		for _, d := range all {
			if d.Data != nil && d.Data.ID == id {
				return i, *d.Data
			}
			i++
		}
	}
	t.Fatalf("there is no figure %s", id)
	return 0, figure.Figure{}
}

// The curve shows the measurements of each step to users who point at it and to users of screen
// readers.
func TestHover(t *testing.T) {
	f, s := analyzed(t, small())
	p := open(t, f, s, 1600, 900)
	n, fig := number(t, f, s, "curve")
	place := fmt.Sprintf(`figure[data-figure="%d"]`, n)
	p.Wait(`document.querySelector('` + place + `.charted')`)
	over := p.Box(place + " .u-over")
	for i := range f.Curve {
		step := &f.Curve[i]
		p.Move(over.X+1+(over.Width-2)*fig.X.At(float64(step.Clients)), over.Y+over.Height*0.3)
		p.Wait(`!document.querySelector('` + place + ` .chart-box').hidden`)
		var said string
		p.Eval(`document.querySelector('`+place+` .chart-box').innerText`, &said)
		for _, want := range []string{at(f, step), "measured", unit.Bits(step.Throughput), unit.Bits(*step.ThroughputLow),
			unit.Bits(*step.ThroughputHigh)} {
			if !strings.Contains(said, want) {
				t.Errorf("at %s the chart does not say %q: %q", at(f, step), want, said)
			}
		}
	}
	p.Move(5, 5)
	p.Wait(`document.querySelector('` + place + ` .chart-box').hidden`)
	p.Eval(`document.querySelector('`+place+` .chart-plot').focus()`, nil)
	p.Keys(browser.Right + browser.Right + browser.Right + browser.Left)
	var said string
	p.Eval(`document.querySelector('`+place+` [aria-live]').textContent`, &said)
	if want := at(f, &f.Curve[1]) + ": measured " + unit.Bits(f.Curve[1].Throughput); !strings.HasPrefix(said, want) {
		t.Errorf("%q was announced, not %q", said, want)
	}
	sound(t, p)
}

// Charts with the same axis zoom together, by dragging and by keys, and zoom out again.
func TestZoom(t *testing.T) {
	f, s := analyzed(t, small())
	p := open(t, f, s, 1600, 900)
	n, _ := number(t, f, s, "time")
	other, _ := number(t, f, s, "latencytime")
	place := fmt.Sprintf(`figure[data-figure="%d"]`, n)
	drawAll(p)
	zoomed := func(n int) string {
		return fmt.Sprintf(`!document.querySelector('figure[data-figure="%d"] .chart-reset').hidden`, n)
	}
	over := p.Box(place + " .u-over")
	p.Drag(over.X+over.Width*0.3, over.Y+50, over.X+over.Width*0.6, over.Y+53)
	p.Wait(zoomed(n) + " && " + zoomed(other))
	p.Click(over.X+over.Width*0.5, over.Y+50, 2)
	p.Wait("!(" + zoomed(n) + ") && !(" + zoomed(other) + ")")
	p.Eval(`document.querySelector('`+place+` .chart-plot').focus()`, nil)
	p.Keys(browser.Right + "++")
	p.Wait(zoomed(n) + " && " + zoomed(other))
	p.Keys(browser.Escape)
	p.Wait("!(" + zoomed(n) + ") && !(" + zoomed(other) + ")")
	p.Drag(over.X+over.Width*0.3, over.Y+50, over.X+over.Width*0.31, over.Y+140) // up and down: only the y axis
	p.Wait(zoomed(n) + " && !(" + zoomed(other) + ")")
	p.Press(place + " .chart-reset")
	p.Wait("!(" + zoomed(n) + ")")
	sound(t, p)
}

// The numbers of each chart can be read and saved, without exception.
func TestData(t *testing.T) {
	f, s := analyzed(t, small())
	p := open(t, f, s, 1600, 900)
	drawAll(p)
	p.Eval(`(() => { window.saved = []; const make = URL.createObjectURL; URL.createObjectURL = b => { saved.push(b); return make(b) } })()`,
		nil)
	for id, want := range map[string]int{"curve": len(f.Curve), "time": len(s.Points), "latencytime": len(s.Points)} {
		n, fig := number(t, f, s, id)
		place := fmt.Sprintf(`figure[data-figure="%d"]`, n)
		p.Eval(`saved.length = 0`, nil)
		p.Press(place + " .chart-data button:nth-of-type(2)")
		p.Wait(`saved.length === 1`)
		var text string
		p.Eval(`saved[0].text()`, &text)
		lines := strings.Split(strings.TrimSpace(text), "\n")
		own := 0
		for _, l := range lines[1:] {
			if cells := strings.Split(l, ","); cells[1] != "" { // other rows contain only a model
				own++
			}
		}
		if own != want || !strings.HasPrefix(lines[0], fig.X.Label) {
			t.Errorf("%s: %d of %d lines, not %d: %s", id, own, len(lines)-1, want, lines[0])
		}
		p.Press(place + " .chart-data button")
		p.Wait(`document.querySelectorAll('` + place + ` .chart-table tbody tr').length === ` + fmt.Sprint(len(lines)-1))
		p.Press(place + " .chart-data button")
		p.Wait(`!document.querySelector('` + place + ` .chart-table')`)
	}
	p.Eval(`document.querySelectorAll(".chart-data button:first-of-type").forEach((b) => b.click())`, nil)
	p.Headings()                       // of all charts' tables
	n, _ := number(t, f, s, "latency") // it has several lines
	first := fmt.Sprintf(`figure[data-figure="%d"] .legend-entry`, n)
	p.Press(first)
	p.Wait(`document.querySelector('` + first + `').getAttribute("aria-pressed") === "false"`)
	sound(t, p)
}

// Nothing extends beyond the page, from phones to wide screens, light and dark.
func TestWidths(t *testing.T) {
	f, s := analyzed(t, cluster())
	for _, widths := range [][]int{{400, 320}, {1600, 820}} { // phones, and windows
		p := open(t, f, s, widths[0], 900, browser.Dark())
		drawAll(p)
		for i, width := range widths {
			if i > 0 {
				p.Resize(width, 900)
			}
			p.Wait(fmt.Sprintf(`innerWidth === %d || document.documentElement.scrollWidth > innerWidth`, width))
			var wide string
			p.Eval(`document.documentElement.scrollWidth > innerWidth ? [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll")).map(e => e.tagName + "." + e.className).slice(0, 5).join() || "?" : ""`, &wide)
			if wide != "" {
				t.Errorf("at %d pixels the page is wider than the window: %s", width, wide)
			}
		}
		sound(t, p)
	}
}

// A finger that moves up scrolls the page, also on a chart; two fingers that move apart zoom.
func TestFingers(t *testing.T) {
	f, s := analyzed(t, small())
	p := open(t, f, s, 400, 800)
	drawAll(p)
	n, _ := number(t, f, s, "time")
	place := fmt.Sprintf(`figure[data-figure="%d"]`, n)
	over := p.Box(place + " .u-over")
	x, y := over.X+over.Width/2, over.Y+over.Height/2
	p.Swipe([2][2]float64{{x - 20, y}, {x - 60, y}}, [2][2]float64{{x + 20, y}, {x + 60, y}})
	p.Wait(`!document.querySelector('` + place + ` .chart-reset').hidden`)
	var before float64
	p.Eval(`scrollY`, &before)
	p.Swipe([2][2]float64{{x, y}, {x, y - 150}})
	p.Wait(fmt.Sprintf(`scrollY > %v + 50`, before))
	sound(t, p)
}

// evil contains all known attacks by a name on a page.
const evil = `</script><script>window.pwned = 1</script><img src=x onerror="window.pwned = 1"><svg onload='window.pwned = 1'>"'` +
	"`&amp;${window.pwned = 1}\u2028\u202e\x00"

// Hostile names are displayed as text, regardless of their source.
func TestHostileNamesInABrowser(t *testing.T) {
	x := small()
	x.Clients = []int{1, 8, 64}
	x.Interval = func(iv *measure.Interval) { iv.Server, iv.Failed = evil, map[storage.Class]int64{storage.Other: 1} }
	x.Sample = func(m *monitor.Sample) {
		m.Host, m.Error = evil+m.Host, evil
		for i := range m.Procs {
			m.Procs[i].Name = evil
		}
	}
	f, s := analyzed(t, x)
	f.Name, f.Run, f.Target, f.Work, f.Verdict = evil, evil, evil, evil, evil
	f.Warnings = append(f.Warnings, evil)
	s.Events = append(s.Events, measure.Event{Kind: measure.EventError, Text: evil})
	s.Plan.Name = evil
	s.About.Weir = evil
	p := open(t, f, s, 1600, 900)
	drawAll(p)
	for i := range Figures(f, s).All() { // the boxes beside the mouse as well
		over := p.Box(fmt.Sprintf(`figure[data-figure="%d"] .u-over`, i))
		p.Move(over.X+over.Width*0.4, over.Y+over.Height*0.5)
		p.Press(fmt.Sprintf(`figure[data-figure="%d"] .chart-data button`, i))
	}
	var got struct {
		Run      bool
		Elements int
		Text     string
	}
	p.Eval(`({Run: window.pwned !== undefined, Elements: document.querySelectorAll("img, [onload], [onerror]").length + document.scripts.length - 1, Text: document.body.innerText})`, &got)
	if got.Run || got.Elements != 0 {
		t.Errorf("a name was obeyed (run: %v) or became %d elements", got.Run, got.Elements)
	}
	if !strings.Contains(got.Text, `</script><script>window.pwned = 1</script><img src=x onerror="window.pwned = 1">`) {
		t.Error("the names cannot be read as they are")
	}
	if strings.ContainsAny(got.Text, "\u202e\x00\x1b") {
		t.Error("a name may turn the text around it")
	}
	sound(t, p)
}

// Code that gets into a page cannot run, load or send anything.
func TestPolicy(t *testing.T) {
	f, s := analyzed(t, small())
	p := open(t, f, s, 1600, 900)
	drawAll(p)
	var kept bool
	p.Eval(`(async () => {
		const s = document.createElement("script"); s.textContent = "window.pwned = 1"; document.body.append(s);
		const b = document.createElement("button"); b.setAttribute("onclick", "window.pwned = 1"); document.body.append(b); b.click();
		const sent = await fetch("http://127.0.0.1:9/").then(() => true, () => false);
		return window.pwned === undefined && !sent })()`, &kept)
	if !kept {
		t.Error("the page ran or sent what is not its own")
	}
	if all := strings.Join(p.Errors(), "\n"); strings.Count(all, "Content Security Policy") < 3 {
		t.Errorf("the policy did not refuse all three: %s", all)
	}
}

// Without scripts, without the bundle and on paper, plots are pictures and everything is readable.
func TestStandingStill(t *testing.T) {
	f, s := analyzed(t, small())
	const pictures = `[...document.querySelectorAll("figure > svg")].filter(e => e.getBoundingClientRect().height > 50).length === document.querySelectorAll("figure").length &&
		![...document.querySelectorAll(".chart-place, .chart-data")].some(e => e.getBoundingClientRect().height > 0)`
	p := open(t, f, s, 1600, 900, browser.Still())
	p.Wait(pictures + ` && document.querySelectorAll("figure").length > 5`)
	p.Wait(`document.body.innerText.includes("With scripts, charts can be zoomed")`)
	sound(t, p)

	p = open(t, f, s, 1600, 900)
	drawAll(p)
	p.Wait("!(" + pictures + ")")
	p.Show(browser.Printed())
	p.Wait(pictures)
	if pdf := p.PDF(); bytes.Count(pdf, []byte("/Type /Page\n"))+bytes.Count(pdf, []byte("/Type /Page ")) == 0 && len(pdf) < 50_000 {
		t.Errorf("%d bytes are printed", len(pdf))
	}
	sound(t, p)

	var page bytes.Buffer
	require.NoError(t, writePageWith(&page, runPage(f, s), bundle{}))
	p = openFile(t, page.Bytes(), 400, 900)
	p.Wait(pictures + ` && document.body.innerText.includes("built without the scripts of its pages")`)
	sound(t, p)
}

// The report of an hour of fifty hosts is small and opens at once. The time limit allows for busy
// machines: an idle machine needs a fifth of a second.
func TestReportOfAnHour(t *testing.T) {
	tier.Slow(t, "an hour of fifty hosts is 580 MB")
	needScript(t)
	long := resultstest.Hour()
	long.Cores = 2 // the data that the report leaves out takes most of the time
	f, s := analyzedLong(t, long)
	page := []byte(page1(t, f, s))
	if len(page) > 5e6 {
		t.Errorf("the report has %d bytes", len(page))
	}
	begin := time.Now()
	p := openFile(t, page, 1600, 900)
	p.Wait(`document.querySelector("figure.charted")`)
	var loaded float64
	p.Eval(`performance.getEntriesByType("navigation")[0].domComplete`, &loaded)
	t.Logf("%d bytes; loaded after %.0f ms, with the browser's start and its first chart after %.1f s", len(page), loaded,
		time.Since(begin).Seconds())
	if loaded > 20_000 {
		t.Errorf("the report needs %.0f ms to open", loaded)
	}
	drawAll(p)
	n, _ := number(t, f, s, "time")
	p.Eval(`(() => { window.saved = []; const make = URL.createObjectURL; URL.createObjectURL = b => { saved.push(b); return make(b) } })()`,
		nil)
	p.Press(fmt.Sprintf(`figure[data-figure="%d"] .chart-data button:nth-of-type(2)`, n))
	p.Wait(`saved.length === 1`)
	var lines int
	p.Eval(`saved[0].text().then(text => text.trim().split("\n").length)`, &lines)
	if lines != 1+long.Seconds {
		t.Errorf("%d lines of an hour's seconds", lines)
	}
	sound(t, p)
}

func analyzedLong(t *testing.T, l resultstest.Large) (*analysis.Findings, *analysis.Series) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	require.NoError(t, l.Write(dir))
	return both(t, dir)
}

// A name without a space breaks anywhere: the page stays as wide as the window.
func TestLongNamesInABrowser(t *testing.T) {
	needScript(t)
	long := strings.Repeat("h", 400)
	x := small()
	x.Clients = []int{1, 8, 64}
	x.Interval = func(iv *measure.Interval) { iv.Server = long }
	x.Sample = func(m *monitor.Sample) { m.Host = long + m.Host }
	f, s := analyzed(t, x)
	f.Name, f.Target, f.Verdict = long, long, long
	f.Warnings = append(f.Warnings, long)
	p := open(t, f, s, 400, 900)
	drawAll(p)
	var wide int
	if p.Eval(`document.documentElement.scrollWidth`, &wide); wide > 400 {
		t.Errorf("the page has %d pixels on a phone of 400", wide)
	}
	sound(t, p)
}

// The other pages have charts as well, and fit on a phone.
func TestOtherPagesInABrowser(t *testing.T) {
	needScript(t)
	var compared, repeats bytes.Buffer
	require.NoError(t, ComparisonHTML(&compared, comparisons(t)["two"]))
	require.NoError(t, RepeatedHTML(&repeats, repeated(t), "a & b", func(dir string) string { return dir }))
	for name, page := range map[string][]byte{"comparison": compared.Bytes(), "repetitions": repeats.Bytes()} {
		p := openFile(t, page, 400, 900)
		drawAll(p)
		p.Wait(`document.querySelectorAll("figure").length > 0`)
		var wide bool
		p.Eval(`document.documentElement.scrollWidth > innerWidth`, &wide)
		if wide {
			t.Errorf("%s: the page is wider than a phone", name)
		}
		sound(t, p)
	}
}
