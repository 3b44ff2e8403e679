package trial

import (
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/unit"
	scenarios "weir/scenarios/transfer"
)

func TestParse(t *testing.T) {
	for _, name := range scenarios.Names() {
		text, ok := scenarios.Read(name)
		if !ok {
			t.Fatal(name)
		}
		s, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.Name != name || s.Test == "" || s.About == "" {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if _, ok := scenarios.Read("../transfer"); ok {
		t.Error("a name that is none was read")
	}
}

// Each mistake in a scenario is reported.
func TestParseMistakes(t *testing.T) {
	const head = "name: x\nsites: [A, B]\ncases:\n  - "
	for text, want := range map[string]string{
		"":                               "name",
		"name: x":                        "cases",
		"name: a b\ncases: [{name: y}]":  "one word",
		"name: x\nsites: [A]\ncases: []": "sites",
		head + "{name: y, fies: 3}":      "fies",
		head + "{name: y, files: 3, size: 1MB, at: {A: all}, to: Z, expect: {status: completed}}": "Z",
		head + "{name: y, files: 3, size: 1, at: {A: all}, to: B, expect: {status: completed}}":   "unit",
		head + "{name: y, files: 3, size: 1MB, at: {A: 3-1}, to: B, expect: {status: completed}}": "range",
		head +
			"{name: y, files: 3, size: 1MB, to: B, expect: {status: completed}}": "no site has the files",
		head + "{name: y, files: 3, size: 1MB, at: {A: all}, to: B, missing: [4], expect: {status: completed}}":                 "no file 4",
		head + "{name: y, files: 3, size: 1MB, at: {A: all}, to: B, requests: 4, expect: {status: completed}}":                  "requests",
		head + "{name: y, files: 3, size: 1MB, at: {A: all}, to: B, events: [{after: 1}], expect: {status: completed}}":         "events",
		head + "{name: y, files: 3, size: 1MB, at: {A: all}, to: B, events: [{after: 1, off: Q}], expect: {status: completed}}": "Q",
		head + "{name: y, files: 3, size: 1MB, at: {A: all}, to: B}":                                                            "status",
		head + "{name: y, files: 3, size: {small: 1MB}, at: {A: all}, to: B, expect: {status: completed}}":                      "size",
		head + "{name: y, files: 999999999, size: 1MB, at: {A: all}, to: B, expect: {status: completed}}":                       "files",
		head + "{name: y, files: 3, size: 1MB, at: {A: all}, to: B, open: 2, expect: {status: completed}}":                      "open",
		head + "{name: y, files: 3, size: 1MB, at: {A: all}, to: B, expect: {status: completed, from: {Q: 1}}}":                 "Q",
		"name: x\nat_once: 1001\ncases: [{name: y}]":                                                                            "at_once",
		"name: x\n\tcases: []":        "",
		head + "{name: '', files: 3}": "no name",
		head + "{name: y, files: 3, size: 1MB, at: {A: all}, to: B, mode: sideways, expect: {status: completed}}": "sideways",
		head + "{name: y, files: 3, size: 1MB, at: {A: all}, to: B, expect: {status: fine}}":                      "fine",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range scenarios.Names() {
		text, _ := scenarios.Read(name)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse(text)
		if err == nil && (s == nil || len(s.Cases) == 0) {
			t.Errorf("%q: nothing was read, and no mistake found", text)
		}
	})
}

// The scenario in the manual can be parsed unchanged.
func TestParseManual(t *testing.T) {
	page := require.File(t, "../../docs/transfer-demo.md")
	_, rest, _ := strings.Cut(string(page), "```yaml\nname: mine")
	text, _, found := strings.Cut(rest, "```")
	s, err := Parse([]byte("name: mine" + text))
	if !found || err != nil {
		t.Fatal(found, err)
	}
	c := s.Cases[0]
	if s.AtOnce != 4 || s.Patience != unit.Duration(time.Second) || c.Size.Seed != 1_000_000_000 || c.At["A"].Last != 7 ||
		c.Events[0].Off != "A" || c.Expect.From["B"].First != 3 {
		t.Errorf("%+v", s)
	}
}

// The needs of sites of one disk are added up; a file that two of them have is counted once.
func TestNeedsOfSites(t *testing.T) {
	dirs := Folders{Default: t.TempDir()}
	disk := func(string) (string, int64) { return "8:1", 1 }
	for name, want := range map[string]struct {
		number int
		bytes  int64
	}{"growing": {4, 30.3e9}, "sources": {0, 22.22e9}, "site-off": {0, 22.22e9}} {
		text, _ := scenarios.Read(name)
		s, err := Parse(text)
		require.NoError(t, err)
		needs := dirs.needs(s, &s.Cases[want.number], true, disk)
		if len(needs) != 1 || needs[0].Need != want.bytes || needs[0].Free != 1 || needs[0].Folder != dirs.Default {
			t.Errorf("%s: %v, want %s in all", name, needs, unit.Bytes(float64(want.bytes)))
		}
	}
}
