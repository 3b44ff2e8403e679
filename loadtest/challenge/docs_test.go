package challenge

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/document"
	"weir/internal/document/documenttest"
	"weir/internal/require"
	"weir/internal/tags"
	"weir/internal/unit"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// Pages of docs: page leads through a challenge, and reference has the keys.
const (
	page      = "../../docs/challenge.md"
	reference = "../../docs/challenge-file.md"
)

var update = flag.Bool("update", false, "write the tables of "+reference+" and the plan of "+page)

// A key is a line of the page's tables.
type key struct {
	path string
	tags.Field
}

// keys returns the keys of the format in the order of the fields, without those of authentication
// and of hosts, which scenarios have as well.
func keys() []key { return keysBelow("", reflect.TypeFor[Challenge]()) }

func keysBelow(path string, of reflect.Type) (all []key) {
	for ; of.Kind() == reflect.Slice; of = of.Elem() {
		path += ".[]"
	}
	switch of {
	case reflect.TypeFor[workload.Dist](), reflect.TypeFor[storage.Auth](), reflect.TypeFor[monitor.Host]():
		return nil
	}
	if of.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range tags.Fields(of) {
		full := document.Join(path, f.Key)
		all = append(append(all, key{full, f}), keysBelow(full, f.Type)...)
	}
	return all
}

// takes returns the values that a key takes, by its type.
func (k key) takes() string {
	if k.Words != nil {
		return "`" + strings.Join(k.Words, "`, `") + "`"
	}
	for of, text := range map[reflect.Type]string{
		reflect.TypeFor[unit.Size](): "size", reflect.TypeFor[unit.Duration](): "duration", reflect.TypeFor[Share](): "percent",
		reflect.TypeFor[unit.Bitrate](): "rate", reflect.TypeFor[workload.Dist](): "drawn size", reflect.TypeFor[string](): "text",
		reflect.TypeFor[bool](): "`true`, `false`", reflect.TypeFor[int](): "whole number", reflect.TypeFor[uint64](): "whole number",
		reflect.TypeFor[[]string](): "list of texts", reflect.TypeFor[[]monitor.Host](): "list of [hosts](scenario.md#hosts)",
		reflect.TypeFor[storage.Auth](): "[authentication](scenario.md#authentication)",
	} {
		if k.Type == of {
			return text
		}
	}
	if k.Type.Kind() == reflect.Slice {
		return "list of maps"
	}
	return "map"
}

func (k key) defaultText() string {
	switch {
	case k.Required:
		return "required"
	case k.Default == "":
		return ""
	}
	return "`" + k.Default + "`"
}

// TestReference compares the tables of keys with the code, line by line: every key, its values and
// its default. -update writes them.
func TestReference(t *testing.T) {
	text := require.File(t, reference)
	listed := map[string]bool{}
	table := regexp.MustCompile(`(?s)<!-- keys: ([a-z_ ]+) -->\n(.*?)<!-- end -->`)
	made := table.ReplaceAllFunc(text, func(block []byte) []byte {
		tops := strings.Fields(string(table.FindSubmatch(block)[1]))
		var b bytes.Buffer
		fmt.Fprintf(&b, "<!-- keys: %s -->\n| key | takes | default | what it is for |\n|---|---|---|---|\n", strings.Join(tops, " "))
		for _, k := range keys() {
			if top, _, _ := strings.Cut(k.path, "."); slices.Contains(tops, top) {
				listed[k.path] = true
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.path, k.takes(), k.defaultText(), strings.ReplaceAll(k.Doc, "|", "\\|"))
			}
		}
		return append(b.Bytes(), "<!-- end -->"...)
	})
	for _, k := range keys() {
		if !listed[k.path] {
			t.Errorf("no table of the page has %s", k.path)
		}
		if n := len(k.Doc); n == 0 || n > 90 || !strings.HasSuffix(k.Doc, ".") {
			t.Errorf("%s: its description has %d characters; write a sentence of at most 90", k.path, n)
		}
	}
	compare(t, reference, made, text)
}

// TestPlanOfPage compares the plan in the page with that of the example before it. -update writes it.
func TestPlanOfPage(t *testing.T) {
	text := require.File(t, page)
	compare(t, page, plannedIn(t, text), text)
}

// compare fails t if a page differs from the text that was made, or writes it with -update.
func compare(t *testing.T, page string, made, text []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(page, made, 0o600))
	} else if d := cmp.Diff(string(made), string(text)); d != "" {
		t.Errorf("%s differs from the code (run with -update if this is meant):\n%s", page, d)
	}
}

// plannedIn replaces the plan in the page by that of the example before it.
func plannedIn(t *testing.T, text []byte) []byte {
	t.Helper()
	shown := regexp.MustCompile("(?s)(<!-- plan of the example -->\n```text\n).*?(```\n)")
	if !shown.Match(text) {
		t.Fatal("the page shows no plan")
	}
	first := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	c, err := Parse("rehearsal.yaml", first[1], nil, nil)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, c.WriteText(&b))
	return shown.ReplaceAll(text, []byte("${1}"+strings.ReplaceAll(b.String(), "$", "$$")+"${2}"))
}

func schema(t *testing.T) documenttest.Schema {
	t.Helper()
	text, err := Schema()
	require.NoError(t, err)
	return documenttest.Compile(t, text)
}

// TestExamples parses the challenges of the pages and of the folder scenarios/challenge, and validates
// them against the schema.
func TestExamples(t *testing.T) {
	s := schema(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rates.csv"), require.File(t, "../../scenarios/challenge/mesh.csv"), 0o600))
	check := func(name string, text []byte) {
		if err := s.Validate(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Parse(name, text, nil, nil); err != nil {
			t.Errorf("%s\n%s", err, text)
		}
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(append(require.File(t, page), require.File(t, reference)...), -1)
	whole := 0
	for _, b := range blocks {
		if Is(b[1]) {
			whole++
			check(filepath.Join(dir, "c.yaml"), b[1])
		}
	}
	files, err := filepath.Glob("../../scenarios/challenge/*.yaml")
	require.NoError(t, err)
	if whole < 1 || len(files) < 2 {
		t.Errorf("%d examples in the pages, %d files", whole, len(files))
	}
	for _, file := range files {
		check(file, require.File(t, file))
		if c, err := Read(file, nil, nil); err == nil && c.Name != strings.TrimSuffix(filepath.Base(file), ".yaml") {
			t.Errorf("%s is called %s", file, c.Name)
		}
	}
	for _, bad := range []string{
		"profile: [{for: 1m, at: 1}]\n", "links: [{from: A, rate: 1Mbit}]\n", "matrix_unit: Mbps\n", "limits: x\n", "seed: a\n",
	} {
		if err := s.Validate([]byte(two + bad)); err == nil {
			t.Errorf("the schema accepts %s", bad)
		}
	}
}
