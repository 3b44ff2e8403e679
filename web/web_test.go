package web

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
)

// Each file that was built is handed out; what was not built is not there.
func TestBundle(t *testing.T) {
	for _, name := range []string{"report.js", "report.css", "live.js", "live.css", "transfer.js", "transfer.css"} {
		b, err := os.ReadFile("dist/" + name)
		if got, ok := Bundle(name); ok != (err == nil) || got != string(b) {
			t.Errorf("%s: %d bytes, %v; the file has %d", name, len(got), ok, len(b))
		}
	}
	for _, name := range []string{"", ".gitkeep", "nothing.js", "../web.go"} {
		if text, ok := Bundle(name); ok {
			t.Errorf("%q: %d bytes", name, len(text))
		}
	}
}

// What is installed is named exactly, and from no particular place.
func TestLockfile(t *testing.T) {
	lock := require.File(t, "package-lock.json")
	if strings.Contains(string(lock), `"resolved"`) {
		t.Error("package-lock.json holds addresses: web/.npmrc is to leave them out")
	}
	for _, name := range []string{"uplot", "esbuild", "typescript"} {
		if !strings.Contains(string(lock), `"node_modules/`+name+`"`) {
			t.Errorf("package-lock.json lacks %s", name)
		}
	}
}

// What comes from outside is text: the ways to make it anything else are not
// used at all.
func TestNothingIsEvaluated(t *testing.T) {
	files, err := filepath.Glob("src/*.ts")
	if err != nil || len(files) < 10 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		text := require.File(t, file)
		for _, way := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
			"createContextualFragment", "srcdoc", "cssText", `setAttribute("style"`} {
			if strings.Contains(string(text), way) {
				t.Errorf("%s uses %s", file, way)
			}
		}
	}
}
