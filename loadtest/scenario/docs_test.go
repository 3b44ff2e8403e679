package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/content"
	"weir/internal/document"
	"weir/internal/document/documenttest"
	"weir/internal/require"
	"weir/internal/tags"
	"weir/internal/unit"
	"weir/link"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
	"weir/storage/all"
	"weir/storage/command"
)

const page = "../../docs/scenario.md"

// TestReference compares the page's tables with the code, line by line: every key, its values and
// its default. -update writes them.
func TestReference(t *testing.T) {
	text := require.File(t, page)
	told := map[string]bool{}
	table := regexp.MustCompile(`(?s)<!-- keys: ([a-z ]+) -->\n(.*?)<!-- end -->`)
	made := table.ReplaceAllFunc(text, func(block []byte) []byte {
		tops := strings.Fields(string(table.FindSubmatch(block)[1]))
		var b bytes.Buffer
		fmt.Fprintf(&b, "<!-- keys: %s -->\n| key | takes | default | what it is for |\n|---|---|---|---|\n", strings.Join(tops, " "))
		for _, k := range keys() {
			if top, _, _ := strings.Cut(k.path, "."); slices.Contains(tops, top) {
				told[k.path] = true
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.path, k.takes(), k.defaultText(), strings.ReplaceAll(k.Doc, "|", "\\|"))
			}
		}
		return append(b.Bytes(), "<!-- end -->"...)
	})
	for _, k := range keys() {
		if !told[k.path] {
			t.Errorf("no table of the page has %s", k.path)
		}
		if n := len(k.Doc); n == 0 || n > 80 || !strings.HasSuffix(k.Doc, ".") {
			t.Errorf("%s: its description has %d characters; write a sentence of at most 80", k.path, n)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(page, made, 0o600))
	} else if d := cmp.Diff(string(made), string(text)); d != "" {
		t.Errorf("%s differs from the code (run with -update if this is meant):\n%s", page, d)
	}
}

// A key is a line of the page's tables.
type key struct {
	path string
	tags.Field
}

// keys returns the keys of the format in the order of the fields.
func keys() []key { return keysBelow("", reflect.TypeFor[Scenario]()) }

func keysBelow(path string, of reflect.Type) (all []key) {
	switch of {
	case reflect.TypeFor[workload.Span](), reflect.TypeFor[workload.Dist]():
		return nil // ways to draw, see the page's table of units
	case reflect.TypeFor[Links]():
		of = reflect.TypeFor[link.Spec]()
	}
	for ; of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice; of = of.Elem() {
		if of.Kind() == reflect.Slice {
			path += ".[]"
		}
	}
	if of.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range tags.Fields(of) {
		full := document.Join(path, f.Key)
		all = append(all, key{full, f})
		if full != "populations.[].workload" { // has the keys of workload
			all = append(all, keysBelow(full, f.Type)...)
		}
	}
	return all
}

func (k key) defaultText() string {
	switch {
	case k.Default == "":
		return ""
	case k.When != "":
		return "`" + k.Default + "` (" + k.When + ")"
	}
	return "`" + k.Default + "`"
}

// takes returns the values that a key takes, by its type.
func (k key) takes() string {
	switch {
	case k.path == "target":
		return "text, or list of texts"
	case k.Words != nil:
		text := "`" + strings.Join(k.Words, "`, `") + "`"
		if k.path == "client" {
			text += ", or a map with `command`"
		}
		return text
	}
	for of, text := range map[reflect.Type]string{
		reflect.TypeFor[unit.Size](): "size", reflect.TypeFor[unit.Duration](): "duration", reflect.TypeFor[unit.Fraction](): "share",
		reflect.TypeFor[Counts](): "steps: numbers of clients", reflect.TypeFor[Rates](): "steps: rates",
		reflect.TypeFor[workload.Span](): "drawn duration",
		reflect.TypeFor[workload.Dist](): "drawn size", reflect.TypeFor[map[string]float64](): "map of operations and weights",
		reflect.TypeFor[string](): "text", reflect.TypeFor[bool](): "`true`, `false`", reflect.TypeFor[[]string](): "list of texts",
		reflect.TypeFor[[]int](): "list of whole numbers",
		reflect.TypeFor[int]():   "whole number", reflect.TypeFor[int64](): "whole number", reflect.TypeFor[uint64](): "whole number",
		reflect.TypeFor[float64]():      "number",
		reflect.TypeFor[unit.Bitrate](): "speed", reflect.TypeFor[Links](): "map of keys, or of names and maps",
		reflect.TypeFor[[]link.Outage]():  "list of maps",
		reflect.TypeFor[[]monitor.Host](): "list of maps", reflect.TypeFor[[]Population](): "list of maps",
		reflect.TypeFor[Matrix](): "map of keys and lists of values", reflect.TypeFor[Variables](): "names and values",
	} {
		if k.Type == of {
			return text
		}
	}
	return "map"
}

func TestWords(t *testing.T) {
	var presets []string
	for _, p := range command.Presets() {
		presets = append(presets, p.Name)
	}
	for path, want := range map[string][]string{"client": presets, "workload.checksum": content.Algorithms()} {
		if d := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(tags.Words[Scenario](path)))); d != "" {
			t.Errorf("%s: %s", path, d)
		}
	}
}

func schema(t *testing.T) documenttest.Schema {
	t.Helper()
	text, err := Schema()
	require.NoError(t, err)
	return documenttest.Compile(t, text)
}

func TestSchema(t *testing.T) {
	text, err := Schema()
	require.NoError(t, err)
	golden(t, "schema.json", text)
	for _, k := range keys() {
		if !bytes.Contains(text, []byte(strings.ReplaceAll(k.Doc, `"`, `\"`))) {
			t.Errorf("the schema does not describe %s", k.path)
		}
	}
	s := schema(t)
	const target = "target: http://a/\n"
	for _, good := range []string{
		"workload: {think: 0, verify: 0.5, chunk: 0, timeout: 1h 30m}", "load: {clients: 5}", "load: {clients: \"1,2\"}",
		"load: {clients: {from: 1, to: 9, by: x2}}",
		"load: {rate: 10/s}", "load: {rate: [10/s]}", "client: xrdcp", "client: {command: [a, b]}",
		"workload: {kind: \"${KIND}\", retries: \"${N}\"}",
		"variables: {A: null, B: 1, C: x}", "workload: {size: {weights: {1MiB: 3}}}", "stop: {error_ratio: 5%}", "seed: 7",
		"link: {rate: 2Mbit/s, rtt: 51ms, loss: 0, share: 1.5, congestion: cubic}", "link: {a: {rate: 12MB/s, up: 0}, b: {outages: " +
			"[{after: 1s, for: 2s}]}}", "link: {rate: \"${RATE}\"}\nvariables: {RATE: 1Mbit/s}",
	} {
		if err := s.Validate([]byte(target + good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"workload: {sesion: kept}", "workload: {session: keept}", "load: {duration: 10}", "load: {duration: 10min}", "load: {clients: 0}",
		"load: {clients: {from: 1}}", "client: [a]",
		"workload: {think: {uniform: [1s]}}", "workload: {verify: 2}", "auth: {password: x}", "hosts: [{role: sever}]",
		"workload: {size: {weights: {1MiB: -1}}}",
		"variables: {a-b: 1}", "files: {listing: maybe}", "link: {}", "link: {speed: 1Mbit/s}", "link: {rate: 2Mbit}", "link: {cern: {}}",
		"link: {cern: {rtt: 1ms}, rate: 1Mbit/s}", "link: {outages: [{after: 1s}]}", "seed: -1", "load: {rate: 10}",
	} {
		if err := s.Validate([]byte(target + bad)); err == nil {
			t.Errorf("the schema accepts %s", bad)
		}
		if _, err := Parse("s.yaml", []byte(target+bad+"\n"), nil, nil); err == nil {
			t.Errorf("Parse accepts %s", bad)
		}
	}
	if err := s.Validate([]byte("name: x")); err == nil {
		t.Error("the schema accepts a scenario without target")
	}
}

// TestOperationsPage compares the page's table of schemes and operations with the drivers.
func TestOperationsPage(t *testing.T) {
	text := require.File(t, page)
	can := map[string][]storage.Kind{}
	for _, d := range all.Drivers() {
		for _, scheme := range d.Schemes {
			if d.Name != "command" {
				can[scheme] = d.Kinds
			}
		}
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| [^|]+ \\| (yes|no) \\| (yes|no) \\| (yes|no) "+
		"\\| (yes|no) \\|$").FindAllStringSubmatch(string(text), -1)
	told := map[string]bool{}
	for _, row := range rows {
		var k storage.Kind
		require.NoError(t, k.UnmarshalText([]byte(row[1])))
		told[row[1]] = true
		for i, scheme := range []string{"http", "file", "root", "ftp"} {
			if got, want := row[2+i] == "yes", slices.Contains(can[scheme], k); got != want {
				t.Errorf("the page says of %s and %s: %v, the driver: %v", scheme, k, got, want)
			}
		}
	}
	for k := range storage.Kinds {
		if simulated := slices.Contains(can["simulated"], k); k != storage.Copy && k != storage.Run &&
			(!told[k.String()] || simulated != (k != storage.Locate)) {
			t.Errorf("the page does not say who can %s, or that simulated %v", k, simulated)
		}
	}
}

func TestReadyScenarios(t *testing.T) {
	s := schema(t)
	files, err := filepath.Glob("../../scenarios/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	jobs, err := filepath.Glob("../../scenarios/jobs/*.yaml")
	if err != nil || len(jobs) < 5 {
		t.Fatalf("%d scenarios of jobs, %v", len(jobs), err)
	}
	for _, file := range append(files, jobs...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if err := s.Validate(text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		sc, err := Read(file, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		p, err := planned(sc)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if want := strings.TrimSuffix(filepath.Base(file), ".yaml"); p.Name != want {
			t.Errorf("%s is called %s", file, p.Name)
		}
	}
}

// planned plans all variants of s and returns the first one's plan.
func planned(s *Scenario) (first *Plan, err error) {
	for _, v := range s.Variants() {
		p, e := v.Scenario.Plan(all.Drivers())
		err = errors.Join(err, e)
		if first == nil {
			first = p
		}
	}
	return first, err
}

func TestFirstLightIsTheDefault(t *testing.T) {
	s, err := Read("../../scenarios/first-light.yaml", nil, nil)
	require.NoError(t, err)
	got, err := s.Plan(all.Drivers())
	require.NoError(t, err)
	want, err := defaultFor(BuiltIn).Plan(all.Drivers())
	require.NoError(t, err)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestExamplesOfThePage plans every example of the page.
func TestExamplesOfThePage(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	dir := t.TempDir()
	blocks := regexp.MustCompile("(?s)```(yaml|text)\n(.*?)```").FindAllSubmatch(text, -1)
	s, examples := schema(t), 0
	for _, b := range blocks {
		if bytes.HasPrefix(b[2], []byte("# what the run")) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "fileList.txt"), b[2], 0o600))
		}
	}
	for _, b := range blocks {
		if string(b[1]) != "yaml" {
			continue
		}
		examples++
		if err := s.Validate(b[2]); err != nil {
			t.Errorf("%s\n%v", b[2], err)
		}
		sc, err := Parse(filepath.Join(dir, "s.yaml"), b[2], nil, nil)
		if err != nil {
			t.Errorf("%s\n%v", b[2], err)
			continue
		}
		if _, err := planned(sc); err != nil {
			t.Errorf("%s\n%v", b[2], err)
		}
	}
	if examples < 10 {
		t.Errorf("only %d examples found", examples)
	}
	_, err = Parse("my-first.yaml", []byte("name: my-first\ntarget: http://a/\nworkload: {sesion: kept}\nload:\n  clients: "+
		"[1]\n  duration: 30\n"), nil, nil)
	if err == nil || !strings.Contains(string(text), "```text\n"+err.Error()+"\n```") {
		t.Errorf("the page shows other mistakes than\n%v", err)
	}
}
