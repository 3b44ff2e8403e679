package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"weir/internal/document"
	"weir/internal/require"
	"weir/internal/unit"
	"weir/link"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
	"weir/storage/all"
	"weir/storage/command"
)

const page = "../../docs/scenario.md"

// TestReference compares the page's tables with the code, line by line: every
// key, what it takes, its default. -update writes them.
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
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.path, takes(t, k.path), defaultText(k.path), strings.ReplaceAll(k.about, "|", "\\|"))
			}
		}
		return append(b.Bytes(), "<!-- end -->"...)
	})
	for _, k := range keys() {
		if !told[k.path] {
			t.Errorf("no table of the page has %s", k.path)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(page, made, 0o600))
	} else if d := cmp.Diff(string(made), string(text)); d != "" {
		t.Errorf("%s differs from the code (run with -update if this is meant):\n%s", page, d)
	}
}

func defaultText(path string) string {
	if v, ok := defaultValues()[path]; ok {
		return fmt.Sprintf("`%v`", v)
	}
	return ""
}

// takes says what a key takes, from its type.
func takes(t *testing.T, path string) string {
	t.Helper()
	if path == "variables" {
		return "names and values"
	}
	if path == "target" {
		return "text, or list of texts"
	}
	if w := words()[path]; w != nil {
		text := "`" + strings.Join(w, "`, `") + "`"
		if path == "client" {
			text += ", or a map with `command`"
		}
		return text
	}
	typ := typeOf(reflect.TypeFor[Scenario](), strings.Split(path, "."))
	if typ == nil {
		t.Errorf("no field for %s", path)
		return ""
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
		reflect.TypeFor[Matrix](): "map of keys and lists of values",
	} {
		if typ == of {
			return text
		}
	}
	return "map"
}

func typeOf(t reflect.Type, path []string) reflect.Type {
	if t == reflect.TypeFor[Links]() && len(path) > 0 {
		t = reflect.TypeFor[link.Spec]()
	}
	for t.Kind() == reflect.Pointer || len(path) > 0 && path[0] == "[]" && t.Kind() == reflect.Slice {
		if t.Kind() == reflect.Slice {
			path = path[1:]
		}
		t = t.Elem()
	}
	if len(path) == 0 {
		return t
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	f, ok := document.FieldOf(reflect.New(t).Elem(), path[0])
	if !ok {
		return nil
	}
	return typeOf(f.Type(), path[1:])
}

// TestKeysAreTheTypes checks that the table of keys names every key that can
// be decoded, and no other.
func TestKeysAreTheTypes(t *testing.T) {
	want := []string{"variables"}
	var walk func(typ reflect.Type, path string)
	walk = func(typ reflect.Type, path string) {
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if path != "" {
			want = append(want, path)
		}
		switch typ {
		case reflect.TypeFor[workload.Span](), reflect.TypeFor[workload.Dist]():
			return
		case reflect.TypeFor[Links]():
			typ = reflect.TypeFor[link.Spec]()
		case reflect.TypeFor[[]link.Outage]():
			for _, name := range document.FieldNames(typ.Elem()) {
				want = append(want, path+".[]."+name)
			}
			return
		case reflect.TypeFor[[]monitor.Host](), reflect.TypeFor[[]Population]():
			for _, name := range document.FieldNames(typ.Elem()) {
				want = append(want, path+".[]."+name)
			}
			return
		}
		if typ.Kind() == reflect.Struct {
			for _, name := range document.FieldNames(typ) {
				f, _ := document.FieldOf(reflect.New(typ).Elem(), name)
				walk(f.Type(), document.Join(path, name))
			}
		}
	}
	walk(reflect.TypeFor[Scenario](), "")
	var got []string
	for _, k := range keys() {
		got = append(got, k.path)
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestProgramsAreThoseOfTheDriver(t *testing.T) {
	var want []string
	for _, p := range command.Presets() {
		want = append(want, p.Name)
	}
	got := slices.Sorted(slices.Values(words()["client"]))
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := Schema()
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("scenario.schema.json", doc))
	s, err := c.Compile("scenario.schema.json")
	require.NoError(t, err)
	return s
}

// valid validates YAML against the schema.
func valid(s *jsonschema.Schema, text []byte) error {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return err
	}
	js, err := json.Marshal(v)
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(js))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

func TestSchema(t *testing.T) {
	text, err := Schema()
	require.NoError(t, err)
	golden(t, "schema.json", text)
	for _, k := range keys() {
		if !bytes.Contains(text, []byte(strings.ReplaceAll(k.about, `"`, `\"`))) {
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
		if err := valid(s, []byte(target+good)); err != nil {
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
		if err := valid(s, []byte(target+bad)); err == nil {
			t.Errorf("the schema accepts %s", bad)
		}
		if _, err := Parse("s.yaml", []byte(target+bad+"\n"), nil, nil); err == nil {
			t.Errorf("Parse accepts %s", bad)
		}
	}
	if err := valid(s, []byte("name: x")); err == nil {
		t.Error("the schema accepts a scenario without target")
	}
}

// TestOperationsPage compares the page's table of who can do what with the
// drivers.
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
		if err := valid(s, text); err != nil {
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
		if err := valid(s, b[2]); err != nil {
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
