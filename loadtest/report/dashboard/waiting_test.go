package dashboard

import (
	"path/filepath"
	"strings"
	"testing"

	"weir/lab/browser"
)

// A page that waits shows the reason, and no empty tables; when the next run has begun, no result
// of the previous run remains.
func TestNothingOfAnotherRun(t *testing.T) {
	bundled(t)
	dir := filepath.Join(t.TempDir(), "runs")
	s := serving(t, Config{Dir: dir})
	p := browser.Open(t, s.URL(), 800, 600)
	p.Wait(`document.querySelector(".state")?.textContent.startsWith("Waiting")`)
	var seen string
	p.Eval(`document.body.innerText`, &seen)
	for _, no := range []string{"Steps", "Events", "Seconds", "Checks"} {
		if strings.Contains(seen, no) {
			t.Errorf("%q is shown while nothing is known: %q", no, seen)
		}
	}
	var boxes int
	p.Eval(`document.querySelectorAll(".stamp:not([hidden])").length`, &boxes)
	if boxes != 0 {
		t.Error("an empty stamp is shown")
	}
	plain := body(t, response(s.http.Handler, "GET", "/plain", nil))
	if strings.Contains(plain, "s left") || strings.Contains(plain, "<table") {
		t.Errorf("the plain page shows %s", plain)
	}
	first := begin(t, filepath.Join(dir, "one"))
	first.seconds(8)
	first.event("end", "all steps done")
	first.check(first.w.Close())
	p.Wait(`document.querySelector(".verdict").textContent.length > 30`)
	begin(t, filepath.Join(dir, "two"))
	p.Wait(`document.querySelector("header .meta").textContent.endsWith("two")`)
	p.Wait(`document.querySelector(".says .meta").textContent === "No verdict yet."`)
	if p.Eval(`document.querySelector(".verdict").textContent`, &seen); seen != "" {
		t.Errorf("the run has no verdict yet, and the page says %q", seen)
	}
	p.Silent()
}
