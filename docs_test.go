package weir

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/internal/require"
)

// docPages returns the pages of documentation.
func docPages() ([]string, error) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		return nil, err
	}
	reports, err := filepath.Glob("docs/reports/*.md")
	return append(pages, reports...), err
}

// TestLinks follows each link between pages, and each name of a page or picture of docs in other
// files: file and heading exist. docs/README.md links to every page.
func TestLinks(t *testing.T) {
	pages, err := docPages()
	require.NoError(t, err)
	headings, linked := map[string]map[string]bool{}, map[string]bool{}
	pages = append(pages, "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
	for _, page := range pages {
		headings[page] = anchorsOf(t, page)
	}
	check := func(from, to, anchor string) {
		if anchors := headings[to]; anchor != "" && anchors != nil && !anchors[anchor] {
			t.Errorf("%s: %s has no heading #%s", from, to, anchor)
		} else if _, err := os.Stat(to); err != nil {
			t.Errorf("%s: %v", from, err)
		}
	}
	links := 0
	for _, page := range pages {
		text := withoutCode(t, page)
		for _, m := range linkText.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			to := page
			if file != "" {
				to = filepath.Join(filepath.Dir(page), file)
			}
			check(page, to, anchor)
			if page == "docs/README.md" {
				linked[to] = true
			}
		}
	}
	if links < 200 {
		t.Errorf("only %d links found", links)
	}
	for _, page := range pages {
		if strings.HasPrefix(page, "docs/") && page != "docs/README.md" && !linked[page] {
			t.Errorf("docs/README.md does not link to %s", page)
		}
	}
	for _, file := range sources(t) {
		text := require.File(t, file)
		for _, m := range pageName.FindAllStringSubmatch(string(text), -1) {
			check(file, m[1], m[2])
		}
	}
}

var (
	linkText = regexp.MustCompile(`(?:\]\(|src(?:set)?=")([^)"\s]+)`)
	pageName = regexp.MustCompile(`\b(docs/[a-z-]+\.(?:md|png))(?:#([a-z0-9-]+))?`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+?)\s*$`)
	notText  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	dropped  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// withoutCode returns a page without its blocks of code.
func withoutCode(t *testing.T, page string) string {
	t.Helper()
	text := require.File(t, page)
	return regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(string(text), "")
}

// anchorsOf returns the anchors that GitHub gives to the headings of a page.
func anchorsOf(t *testing.T, page string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(withoutCode(t, page), -1) {
		name := dropped.ReplaceAllString(strings.ToLower(notText.ReplaceAllString(m[1], "$1")), "")
		name = strings.ReplaceAll(name, " ", "-")
		for i, first := 1, name; all[name]; i++ {
			name = fmt.Sprintf("%s-%d", first, i)
		}
		all[name] = true
	}
	return all
}

// sources returns the files in Go, TypeScript and YAML, which may contain names of pages.
func sources(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "build" || len(d.Name()) > 1 && d.Name()[0] == '.'):
			return filepath.SkipDir
		}
		switch filepath.Ext(path) {
		case ".go", ".yaml", ".ts":
			files = append(files, path)
		}
		return nil
	})
	require.NoError(t, err)
	return files
}

// CONTRIBUTING.md names each module that go.mod requires directly, and no module that go.mod does not have.
func TestDependencies(t *testing.T) {
	page := require.File(t, "CONTRIBUTING.md")
	mod := require.File(t, "go.mod")
	named := map[string]bool{}
	module := regexp.MustCompile(`\b(?:github\.com|(?:google\.)?golang\.org|gonum\.org|codeberg\.org|modernc\.org|go\.yaml\.in|filippo\.io)/[\w./-]*\w`)
	for _, name := range module.FindAllString(string(page), -1) {
		named[name] = true
	}
	required := regexp.MustCompile(`(?m)^\t(\S+) \S+( // indirect)?$`).FindAllStringSubmatch(string(mod), -1)
	if len(required) < 20 {
		t.Fatalf("only %d modules found in go.mod", len(required))
	}
	for _, m := range required {
		if !named[m[1]] && m[2] == "" {
			t.Errorf("CONTRIBUTING.md does not name %s", m[1])
		}
		delete(named, m[1])
	}
	for name := range named {
		t.Errorf("CONTRIBUTING.md names %s, which go.mod does not require", name)
	}
}

var provedBy = regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z0-9]+)`")

// Each statement of docs/security.md names the tests that prove it, and these exist.
func TestSecurityDocs(t *testing.T) {
	page := require.File(t, "docs/security.md")
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 || strings.HasPrefix(cells[1], "-") || strings.TrimSpace(cells[2]) == "test" {
			continue
		}
		rows++
		names := provedBy.FindAllStringSubmatch(cells[2], -1)
		if len(names) == 0 {
			t.Errorf("no test proves %q", cells[1])
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

// Each folder in which the Makefile runs tests exists, and has tests for each part of the
// expression after -run.
func TestMakefile(t *testing.T) {
	text := strings.ReplaceAll(string(require.File(t, "Makefile")), "\\\n", " ")
	folder := regexp.MustCompile(` \./([a-z/]+)(/\.\.\.)?`)
	chosen := regexp.MustCompile(`-run '?([A-Za-z|]+)`)
	folders := 0
	for line := range strings.Lines(text) {
		_, command, ok := strings.Cut(line, "go test ")
		if !ok {
			continue
		}
		var tests []byte
		for _, m := range folder.FindAllStringSubmatch(" "+command, -1) {
			folders++
			pattern := "*_test.go"
			if m[2] != "" {
				pattern = "*/*_test.go"
			}
			files, err := filepath.Glob(filepath.Join(m[1], pattern))
			require.NoError(t, err)
			if len(files) == 0 {
				t.Errorf("Makefile: no tests in %s: %s", m[1], command)
			}
			for _, file := range files {
				tests = append(tests, require.File(t, file)...)
			}
		}
		if m := chosen.FindStringSubmatch(command); m != nil {
			for name := range strings.SplitSeq(m[1], "|") {
				if !regexp.MustCompile(`(?m)^func Test\w*` + strings.TrimPrefix(name, "Test") + `\w*\(`).Match(tests) {
					t.Errorf("Makefile: no test is named %s: %s", name, command)
				}
			}
		}
	}
	if folders < 10 {
		t.Errorf("%d folders found", folders)
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	if len(files) == 0 {
		return false
	}
	return exec.CommandContext(t.Context(), "grep", append([]string{"-q", "^func " + name + "("}, files...)...).Run() == nil
}

var (
	reportTitle = regexp.MustCompile(`^# .*?(\d{4}): run again\n`)
	reportRow   = regexp.MustCompile(`(?m)^\| \[[^\]]+\]\((?:docs/)?(reports/[0-9a-z-]+\.md)\).*$`)
	yearOfTest  = regexp.MustCompile(`, (\d{4}) \|`)
)

// The tables of published tests have the year in the title of each report.
func TestYearsOfReports(t *testing.T) {
	rows := 0
	for _, page := range []string{"README.md", "docs/README.md"} {
		for _, m := range reportRow.FindAllStringSubmatch(string(require.File(t, page)), -1) {
			rows++
			title := reportTitle.FindStringSubmatch(string(require.File(t, "docs/"+m[1])))
			if year := yearOfTest.FindStringSubmatch(m[0]); title == nil || year == nil || year[1] != title[1] {
				t.Errorf("%s: the year %q of %s, whose title has %q", page, year, m[1], title)
			}
		}
	}
	if rows != 10 {
		t.Errorf("%d rows of published tests", rows)
	}
}
