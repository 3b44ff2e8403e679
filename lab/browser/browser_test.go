package browser

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const page = `<!DOCTYPE html><html lang="en"><meta name="viewport" content="width=device-width"><title>t</title>
<style>body{margin:0;height:3000px}#a{position:absolute;left:10px;top:1500px;width:100px;height:50px} @media print{#a{display:none}} @media(prefers-color-scheme:dark){#a{width:200px}}</style>
<div id=a tabindex=0></div><input id=i><noscript>no script</noscript>
<script>
window.seen = [];
const a = document.getElementById("a");
for (const kind of ["mousemove", "mousedown", "mouseup", "dblclick", "touchstart", "touchend"]) a.addEventListener(kind, e => seen.push(kind));
document.addEventListener("keydown", e => seen.push(e.key));
</script></html>`

func serve(t *testing.T, text string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
	t.Cleanup(s.Close)
	return s.URL
}

func TestActing(t *testing.T) {
	p := Open(t, serve(t, page), 1600, 900)
	b := p.Box("#a")
	if b.Width != 100 || b.Height != 50 || b.Y < 300 || b.Y > 600 {
		t.Errorf("the element is at %v", b)
	}
	p.Move(b.X+5, b.Y+5)
	p.Drag(b.X+5, b.Y+5, b.X+50, b.Y+20)
	p.Click(b.X+5, b.Y+5, 2)
	p.Press("#i")
	p.Keys("ab" + Left + Escape)
	var seen []string
	p.Eval("seen", &seen)
	for _, want := range []string{"mousemove", "mousedown", "mouseup", "dblclick", "a", "b", "ArrowLeft", "Escape"} {
		if !slices.Contains(seen, want) {
			t.Errorf("the page did not see %s, only %q", want, seen)
		}
	}
	var text string
	p.Eval(`Promise.resolve(document.getElementById("i").value)`, &text)
	if text != "ab" {
		t.Errorf("%q was typed", text)
	}
	p.Show(Dark())
	if b := p.Box("#a"); b.Width != 200 {
		t.Errorf("dark is not dark: %v", b)
	}
	p.Show(Printed())
	if b := p.Box("#a"); b.Width != 0 {
		t.Errorf("printed is not printed: %v", b)
	}
	p.Resize(700, 500)
	p.Wait("innerWidth === 700")
	if e := p.Errors(); len(e) != 0 {
		t.Errorf("complaints: %q", e)
	}
	if pdf := p.PDF(); !bytes.HasPrefix(pdf, []byte("%PDF")) {
		t.Errorf("%d bytes are no PDF", len(pdf))
	}
	picture := filepath.Join(t.TempDir(), "page.png")
	p.Screenshot(picture)
	if b, err := os.ReadFile(picture); err != nil || !bytes.HasPrefix(b, []byte("\x89PNG")) {
		t.Errorf("no picture: %v", err)
	}
}

func TestPhone(t *testing.T) {
	p := Open(t, serve(t, page), 400, 800)
	var ratio float64
	p.Eval("innerWidth * devicePixelRatio", &ratio)
	if ratio != 800 {
		t.Errorf("the phone is %v device pixels wide", ratio)
	}
	b := p.Box("#a")
	p.Swipe([2][2]float64{{b.X + 5, b.Y + 5}, {b.X + 50, b.Y + 5}})
	p.Wait(`seen.includes("touchend")`)
	p.Reload()
	p.Wait(`seen.length === 0`)
}

func TestErrors(t *testing.T) {
	p := Open(t, serve(t, `<!DOCTYPE html><meta http-equiv="Content-Security-Policy" content="img-src 'none'"><script>
		console.log("fine"); console.error("bad", 1); Promise.reject(new Error("refused"));
		setTimeout(() => { throw new Error("thrown") }); document.write("<img src='x.png'>")</script>`), 1600, 900)
	for _, want := range []string{`"bad" 1`, "refused", "thrown", "Content Security Policy"} {
		for range 3000 { // the browser logs its messages with a delay
			if strings.Contains(strings.Join(p.Errors(), "\n"), want) {
				break
			}
			p.Eval("new Promise(done => setTimeout(done, 20))", nil)
		}
		if !strings.Contains(strings.Join(p.Errors(), "\n"), want) {
			t.Errorf("%q is not among %q", want, p.Errors())
		}
	}
	if strings.Contains(strings.Join(p.Errors(), "\n"), "fine") {
		t.Error("what is only logged counts as an error")
	}
}

func TestStill(t *testing.T) {
	p := Open(t, serve(t, page), 1600, 900, Still())
	var is bool
	p.Eval(`window.seen === undefined`, &is)
	if !is {
		t.Error("the page ran its script")
	}
}
