package weir

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var heldBy = regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z0-9]+)`")

// Each row of docs/security.md names tests, and they are there.
func TestSecurityDocs(t *testing.T) {
	page, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 || strings.HasPrefix(cells[1], "-") || strings.TrimSpace(cells[2]) == "held by" {
			continue
		}
		rows++
		names := heldBy.FindAllStringSubmatch(cells[2], -1)
		if len(names) == 0 {
			t.Errorf("no test holds %q", cells[1])
		}
		for _, n := range names {
			if !hasTest(t, n[1], n[2]) {
				t.Errorf("there is no %s in %s", n[2], n[1])
			}
		}
	}
	if rows < 20 {
		t.Errorf("%d rows", rows)
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		return false
	}
	return exec.CommandContext(t.Context(), "grep", append([]string{"-q", "^func " + name + "("}, files...)...).Run() == nil
}
