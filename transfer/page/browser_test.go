package page_test

import (
	"strings"
	"testing"
	"time"

	"weir/lab/browser"
	"weir/transfer"
	"weir/transfer/catalog"
)

// markup is a name that would have an effect if it were interpreted as anything but text.
const markup = `<img src=x onerror="document.title='run'">'"&amp;` + "\x1b[31m\u202e\u0000$(reboot)"

// Names from other users are shown as text in every view, and are harmless in the commands that the
// page offers to copy.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	bundled(t)
	s := pretend(t)
	s.sites = []catalog.Site{{Name: markup, Kind: markup, URL: "javascript:alert(1)//" + markup, Problem: markup}, {Name: "B", Up: true}}
	s.datasets = []catalog.Dataset{{Name: markup, Files: 2, At: map[string]int64{markup: 1, "__proto__": 1, "B": 1}}}
	s.links = []transfer.Link{{Source: markup, Dest: "__proto__", Why: markup, Rate: 1e6, Active: 1}}
	s.reasons = []transfer.Reason{{Files: 1, File: markup, Text: markup}}
	s.requests = []transfer.Request{{ID: 1, Status: transfer.Running, By: markup, Decided: markup, Reason: markup, Made: time.Now(),
		Count: transfer.Counts{Files: 2, Bytes: 2, Queued: 2},
		Submission: transfer.Submission{Dataset: markup, To: markup, Block: markup, From: []string{markup}, Mode: markup, Share: markup,
			Comment: markup}}}
	s.item = func(_ transfer.Request, id int64) transfer.Item {
		return transfer.Item{ID: id, Name: markup, State: transfer.State(markup), Reason: markup, Source: markup, Tries: 1}
	}
	s.attempts = []transfer.Attempt{{Source: markup, Mode: markup, Outcome: transfer.Outcome{Epoch: 1, Fault: markup, Reason: markup}}}
	p := browser.Open(t, s.URL+"/#code="+s.page.Code("admin:"+markup), 1200, 900)
	for _, at := range []string{"#/", "#/requests?status=" + "%3Cimg", "#/requests", "#/requests/1", "#/datasets", "#/sites", "#/links",
		"#/dataset?name=%3Cimg src=x onerror=document.title=1%3E", "#/sites/%3Cimg src=x%3E", "#/sites/%", "#/requests/999999999999999999999",
		"#/nothing"} {
		p.Eval(`location.hash = "`+at+`"`, nil)
		p.Wait(`document.querySelector("main")?.textContent.length > 10`)
		if at == "#/requests" || at == "#/datasets" || at == "#/sites" || at == "#/links" {
			p.Wait(`document.querySelector("tbody")?.textContent.includes("<img src=x")`)
		}
		harmless(t, p, at)
	}
	p.Eval(`location.hash = "#/requests/1"`, nil)
	p.Wait(`document.querySelector("main h1").textContent.includes("<img") && document.querySelector("tbody button")`)
	p.PressFor("tbody button",
		`document.querySelector("dialog tbody")?.textContent.includes("<img") && document.querySelector("dialog h2").textContent.includes("<img")`)
	harmless(t, p, "a file")
	p.Keys(browser.Escape)
	s.events <- transfer.Event{ID: 9, Time: time.Now(), Status: markup, Request: 1, Text: markup}
	p.Eval(`location.hash = "#/"`, nil)
	s.events <- transfer.Event{ID: 10, Time: time.Now(), Text: markup}
	p.Wait(`document.querySelector("[aria-label='Events'] tbody").textContent.includes("<img")`)
	p.PressFor("#new", `document.querySelector("dialog select")?.textContent.includes("<img")`)
	harmless(t, p, "the form")
	p.Keys(browser.Escape)
	s.mu.Lock()
	s.requests, s.sites = nil, s.sites[:1]
	s.mu.Unlock()
	p.Reload()
	p.Wait(`document.querySelector("code")`)
	var line string
	if p.Eval(`document.querySelector("code").textContent`, &line); line != "weir transfer submit /store/run1 --to B --approve --wait" {
		t.Errorf("to be copied: %q", line)
	}
	p.Silent("404")
}

// harmless fails the test if a name has an effect beyond its text.
func harmless(t *testing.T, p *browser.Page, where string) {
	t.Helper()
	var n int
	var title string
	p.Eval(`document.querySelectorAll("img, main script, dialog script, iframe, a[href^='javascript']").length`, &n)
	if p.Eval(`document.title`, &title); n > 0 || title == "run" || title == "1" {
		t.Errorf("%s: %d elements came from names, title %q", where, n, title)
	}
}

// A million files are shown page by page: neither the page nor the coordinator ever holds more than
// a page of them.
func TestMillionFiles(t *testing.T) {
	t.Parallel()
	bundled(t)
	s := pretend(t)
	busy(s)
	s.requests[2].Count = transfer.Counts{Files: 1e6, Bytes: 1e6 * gb, Done: 4e5, Leased: 40, Queued: 6e5 - 40, DoneBytes: 4e5 * gb}
	p := browser.Open(t, s.URL+"/#code="+s.page.Code("read:eve"), 1200, 900)
	p.Eval(`location.hash = "#/requests/3"`, nil)
	first := `document.querySelector("tbody button")?.textContent`
	p.Wait(first + `.endsWith("000001.root")`)
	press := func(label string) {
		p.Press(`.pages button:nth-of-type(` + map[string]string{"Previous": "1", "Next": "2"}[label] + `)`)
	}
	press("Next")
	p.Wait(first + `.endsWith("000101.root")`)
	press("Next")
	p.Wait(first + `.endsWith("000201.root") && document.querySelector(".pages").textContent.includes("201 to 300")`)
	press("Previous")
	p.Wait(first + `.endsWith("000101.root")`)
	p.Press(".chip.s-queued")
	p.Wait(first + `.endsWith("400041.root") && location.hash.includes("state=queued")`)
	var rows int
	if p.Eval(`document.querySelectorAll("tbody tr").length`, &rows); rows != 100 {
		t.Errorf("%d rows are shown", rows)
	}
	p.Reload()
	p.Wait(first + `.endsWith("400041.root")`)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.asked {
		if strings.Contains(q, "/items") && !strings.Contains(q, "n=101") {
			t.Errorf("the page asked %s", q)
		}
	}
	p.Silent()
}

// The buttons of operations that a user may not perform are missing.
func TestRoles(t *testing.T) {
	t.Parallel()
	bundled(t)
	s := pretend(t)
	busy(s)
	s.requests[3].By = "sam"
	for token, want := range map[string]string{"read:eve": "", "submit:sam": "New request,Cancel",
		"approve:app": "Approve,Reject,Cancel,Cancel,Cancel,Retry", "admin:bob": "New request,Approve,Reject,Cancel,Cancel,Cancel,Retry"} {
		t.Run(token, func(t *testing.T) {
			t.Parallel()
			p := browser.Open(t, s.URL+"/#code="+s.page.Code(token), 1200, 900)
			p.Wait(`document.querySelectorAll("[aria-label='Active requests'] tbody tr").length === 3`)
			var got []string
			p.Eval(`[...document.querySelectorAll("button")].filter((b) => b.offsetParent && b.textContent !== "Sign out").map((b) => b.textContent)`, &got)
			if strings.Join(got, ",") != want {
				t.Errorf("%s has %q", token, got)
			}
			var at string
			if p.Eval(`location.href`, &at); strings.Contains(at, "code") {
				t.Errorf("the code stays in the address: %s", at)
			}
			p.Silent()
		})
	}
}

// A pasted token signs in, and a wrong token is refused with the reason; signing out ends the
// session. All of it works by keyboard.
func TestSigningIn(t *testing.T) {
	t.Parallel()
	bundled(t)
	s := pretend(t)
	p := browser.Open(t, s.URL+"/#code=GUESSED", 400, 800)
	p.Wait(`document.activeElement?.type === "password" && document.querySelector("[role=alert]").textContent.includes("opened already")`)
	p.Fits(400)
	p.Headings()
	p.Picture("sign-in")
	p.Keys("wrong\r")
	p.Wait(`document.querySelector("[role=alert]").textContent.includes("not trusted")`)
	p.Keys("submit:sam\r") // the previous text is selected
	p.Wait(`document.querySelector("nav") && document.querySelector(".empty code")`)
	p.Picture("empty")
	var stored int
	if p.Eval(`document.cookie.length + localStorage.length + sessionStorage.length`, &stored); stored != 0 {
		t.Error("scripts can read what the session is")
	}
	p.Reload()
	p.Wait(`document.querySelector("nav")`)
	p.Eval(`[...document.querySelectorAll("button")].find((b) => b.textContent === "Sign out").focus()`, nil)
	p.Keys("\r")
	p.Wait(`document.querySelector("input[type=password]")`)
	var problem string
	if p.Eval(`document.querySelector("[role=alert]").textContent`, &problem); problem != "" {
		t.Errorf("the form of a user without a session says %q", problem)
	}
	p.Silent("401")
}

// While the coordinator is down the page reports that, and continues by itself.
func TestCoordinatorAway(t *testing.T) {
	t.Parallel()
	bundled(t)
	s := pretend(t)
	busy(s)
	p := browser.Open(t, s.URL+"/#code="+s.page.Code("read:eve"), 1200, 900)
	p.Wait(`document.querySelectorAll("[aria-label='Active requests'] tbody tr").length === 3 && document.querySelector(".wire").textContent.includes("connected")`)
	s.mu.Lock()
	s.away = true
	s.mu.Unlock()
	s.CloseClientConnections()
	p.Wait(`document.querySelector(".wire.lost")`)
	s.mu.Lock()
	s.away = false
	s.requests[2].Status = transfer.Cancelled
	s.mu.Unlock()
	p.Wait(`!document.querySelector(".wire.lost") && document.querySelectorAll("[aria-label='Active requests'] tbody tr").length === 2`)
	p.Silent("503", "ERR_")
}
