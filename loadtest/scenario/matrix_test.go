package scenario

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
)

func names(s *Scenario) []string {
	var out []string
	for _, v := range s.Variants() {
		out = append(out, strings.Join(v.Levels, " / "))
	}
	return out
}

func TestMatrix(t *testing.T) {
	s := parse(t, `
name: m
repeat: 3
seed: 9
workload: {think: 1s}
variables: {HOST: there}
matrix:
  protocol:
  - {name: dav, target: "http://${HOST}/", load.clients: [1, 2]}
  - {name: file, target: file:///data, auth.method: none}
  workload.session: [kept, fresh]
  workload.part: [null, {size: 4KiB}]
`)
	want := []string{
		"dav / kept / left out", "dav / kept / {size: 4KiB}", "dav / fresh / left out", "dav / fresh / {size: 4KiB}",
		"file / kept / left out", "file / kept / {size: 4KiB}", "file / fresh / left out", "file / fresh / {size: 4KiB}",
	}
	if d := cmp.Diff(want, names(s)); d != "" {
		t.Error(d)
	}
	if s.Repeat != 3 || s.Target != "http://there/" || len(s.Matrix) != 3 || s.Matrix[1].Key != "workload.session" {
		t.Errorf("%+v", s)
	}
	for i, v := range s.Variants() {
		p, err := v.Scenario.Plan(drivers())
		require.NoError(t, err)
		dav, fresh, part := i < 4, i%4 >= 2, i%2 == 1
		if (p.Target == "http://there/") != dav || (len(p.Steps) == 2) != dav || (p.Work.Session == "fresh") != fresh ||
			(p.Work.Part != nil) != part {
			t.Errorf("variant %d: %+v", i, p)
		}
		if p.Name != "m" || p.Seed != 9 || p.Work.Think.Fixed != seconds(1) || (p.Auth.Method == "none") == dav {
			t.Errorf("variant %d: %+v", i, p)
		}
	}
	_, err := s.Plan(drivers())
	if err == nil || !strings.HasPrefix(err.Error(), "s.yaml:8:3: matrix: this is a campaign of 24 runs, but") {
		t.Error(err)
	}
}

func TestRepeatAlone(t *testing.T) {
	s := parse(t, "target: http://a/\nrepeat: 2\n")
	if _, err := s.Plan(drivers()); err == nil || !strings.HasPrefix(err.Error(), "s.yaml:2:9: repeat: this is a campaign of 2 runs") {
		t.Error(err)
	}
	v := s.Variants()
	if len(v) != 1 || len(v[0].Levels) != 0 {
		t.Fatalf("%+v", v)
	}
	if _, err := v[0].Scenario.Plan(drivers()); err != nil {
		t.Error(err)
	}
	s, err := DefaultWith(BuiltIn, []string{"repeat=2", "matrix.workload.session=[kept, fresh]"})
	if err != nil || s.Repeat != 2 || len(s.Variants()) != 2 || s.Variants()[1].Scenario.Work.Session != "fresh" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := Parse("", []byte("target: http://a/\nmatrix: {workload.session: [kept]}\n"), nil,
		[]string{"matrix=null", "repeat=4"}); err != nil || s.Repeat != 4 || len(s.Matrix) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestMatrixMistakes(t *testing.T) {
	const target = "target: http://a/\n"
	for _, c := range []struct{ name, text, want string }{
		{"no map", target + "matrix: [a]\n",
			`s.yaml:2:9: matrix: a list; write keys and the values they take in turn, as in {workload.session: [kept, fresh]}`},
		{"empty", target + "matrix: {}\n", `s.yaml:2:9: matrix: an empty map; write keys`},
		{"no list", target + "matrix: {workload.session: kept}\n",
			`s.yaml:2:28: matrix.workload.session: "kept"; write a list of the values that it takes in turn, as in [kept, fresh]`},
		{"nested", target + "matrix: {workload: {session: [kept]}}\n",
			`s.yaml:2:21: matrix.workload: a map; write a key's whole path, as in workload.session; write a list`},
		{"empty list", target + "matrix: {workload.session: []}\n",
			`s.yaml:2:28: matrix.workload.session: an empty list: name at least one value`},
		{"fixed", target + "matrix: {repeat: [1, 2]}\n",
			`s.yaml:2:10: matrix.repeat: applies to all combinations; write repeat outside of the matrix`},
		{"fixed inside", target + "matrix: {p: [{name: x, seed: 1}]}\n",
			`s.yaml:2:24: matrix.p: seed: each repetition has its own seed for all combinations; write seed outside of the matrix`},
		{"no path", target + "matrix: {workload..x: [1]}\n",
			`s.yaml:2:10: matrix.workload..x: not a key; write its dotted path, as in workload.session`},
		{"key", target + "matrix: {workload.sesion: [kept, fresh]}\n", `s.yaml:2:10: unknown key workload.sesion; did you mean session?`},
		{"top key", target + "matrix: {worklod.session: [kept, fresh]}\n",
			`s.yaml:2:28: matrix.worklod.session: unknown key worklod.session; did you mean workload. Keys that change together are maps with a name`},
		{"a link's key", target + "link: {rtt: 1ms}\nmatrix: {link.rate: [1Mbit/s, 2Mbit]}\n",
			`s.yaml:3:31: link.rate: "2Mbit" has an unknown unit; did you mean 2Mbit/s?`},
		{"a link in a group", target + "matrix: {net: [{name: a, link: {cern: {speed: 1}}}, {name: b}]}\n",
			`s.yaml:2:40: unknown key link.cern.speed`},
		{"value", target + "matrix: {auth.method: [none, unix], workload.session: [kept, freesh]}\n",
			`s.yaml:2:62: workload.session: unknown session "freesh"; did you mean fresh?`},
		{"value in a group", target + "matrix: {p: [{name: a, load.duration: 1}, {name: b}]}\n",
			`s.yaml:2:39: load.duration: "1" has no unit; write a duration as in 1.5s, 250ms, 60m or 2d`},
		{"combination", "matrix: {target: [\"http://a/\", \"root://a/\"], workload.session: [kept, shared], seedless: [{name: x}, {name: y}]}\n",
			`s.yaml:1:71: workload.session: clients of http:// cannot share a session, only those of root:// and roots:// can; use kept or fresh (with target http://a/, workload.session shared)`},
		{"twice", target + "matrix: {workload.session: [kept, \"kept\"]}\n",
			`s.yaml:2:35: matrix.workload.session.1: level "kept" is there twice`},
		{"name twice", target + "matrix: {p: [{name: a}, {name: a}]}\n",
			`s.yaml:2:26: matrix.p.1: level "a" is there twice; give each its own name`},
		{"no name", target + "matrix: {p: [{target: x}]}\n", `s.yaml:2:15: matrix.p: unknown key p`},
		{"odd name", target + "matrix: {p: [{name: [a]}]}\n", `s.yaml:2:21: matrix.p: name: a list; write a word`},
		{"two factors", target + "matrix: {auth.method: [none], p: [{name: a, auth: {method: unix}}]}\n",
			`s.yaml:2:45: matrix.p: auth is also varied by auth.method; vary each key in one factor only`},
		{"product", target + "matrix: {load.max_clients: [1,2,3,4,5,6,7,8,9], workload.retries: [1,2,3,4,5,6,7], load.clients: [1,2,3,4,5]}\n",
			`s.yaml:2:10: matrix: 9 x 7 x 5 = 315 combinations are too many; use at most 256, and omit levels or measure some factors in another campaign`},
		{"repeat", target + "repeat: 0\n", `s.yaml:2:9: repeat: 0: use 1 to 1000`},
		{"runs", target + "repeat: 600\nmatrix: {workload.session: [kept, fresh]}\n",
			`s.yaml:2:9: repeat: 2 combinations, 600 times each, are 1200 runs; use at most 1000`},
		{"base", "matrix: {workload.session: [kept, fresh]}\n", `s.yaml: target: missing; name the service`},
		{"secret", target + "matrix: {auth.password: [hunter2, hunter3]}\n", `s.yaml:2:10: auth.password: a scenario must not contain secrets`},
	} {
		_, err := Parse("s.yaml", []byte(c.text), nil, nil)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") ||
			strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
	const text = target + "matrix: {p: [{name: a, auth: {method: none}}], workload.session: [kept, fresh]}\n"
	for set, want := range map[string]string{
		"auth.method=none": "--set auth.method: matrix.p varies auth; choose a level, as in --set p=..., " +
			"change the matrix (--set 'matrix.p=[...]'), or remove it (--set matrix=null)",
		"workload={session: fresh}":        "--set workload: matrix.workload.session varies workload.session",
		"p=b":                              `--set p: matrix.p has no level "b"; use one of a`,
		"p=[a, a.b]":                       `--set p: matrix.p has no level "a.b"; use one of a`,
		"q=a":                              "--set q: unknown key q",
		"matrix.workload.session=[a]":      `--set matrix.workload.session: workload.session: unknown session "a"; use one of kept, fresh, shared`,
		"matrix.=[a]":                      "--set matrix.: write a key and its value, as in --set workload.session=fresh",
		"matrix.workload.session=[kept, ]": "",
	} {
		_, err := Parse("s.yaml", []byte(text), nil, []string{set})
		if want == "" != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", set, err, want)
		}
	}
}

// The command line chooses levels, and its own values override the values of the level.
func TestFixedFactors(t *testing.T) {
	const text = "target: http://a/\nmatrix: {net: [{name: lan, link: {rtt: 1ms}, load.clients: [1, 2]}, {name: wan 2, link: {rtt: 51ms}}, " +
		"{name: far}], workload.session: [kept, fresh]}\n"
	for _, c := range []struct {
		sets     []string
		variants int
		keys     int
		rtt      string
		clients  int // of the last step
		session  string
	}{
		{[]string{"net=lan"}, 2, 1, "1ms", 2, "kept"},
		{[]string{"workload.session=fresh"}, 3, 1, "1ms", 2, "fresh"},
		{[]string{"net=wan 2", "workload.session=fresh"}, 1, 0, "51ms", 0, "fresh"},
		{[]string{"net=lan", "load.clients=7", "workload.session=fresh"}, 1, 0, "1ms", 7, "fresh"},
		{[]string{"net=[lan, far]", "workload.session=fresh"}, 2, 1, "1ms", 2, "fresh"},
	} {
		s, err := Parse("s.yaml", []byte(text), nil, c.sets)
		if err != nil {
			t.Errorf("%q: %v", c.sets, err)
			continue
		}
		all := s.Variants()
		if len(all) != c.variants || len(s.Matrix) != c.keys {
			t.Errorf("%q: %d variants of %+v", c.sets, len(all), s.Matrix)
		}
		p, err := all[0].Scenario.Plan(drivers())
		if err != nil {
			t.Errorf("%q: %v", c.sets, err)
			continue
		}
		if p.Links[0].Spec.RTT.String() != c.rtt || string(p.Work.Session) != c.session || c.clients > 0 &&
			p.Steps[len(p.Steps)-1].Clients != c.clients {
			t.Errorf("%q: %+v, session %s, steps %+v", c.sets, p.Links, p.Work.Session, p.Steps)
		}
	}
}

func TestLevelsHaveNames(t *testing.T) {
	s := parse(t, "target: http://a/\nmatrix: {load.clients: [1, [2, 4], {from: 1, to: 4, by: x2}], name-of-mine: [{name: "+
		"\" two\\nlines \"}], thresholds: [[\"throughput > "+
		strings.Repeat("1", 90)+" Gbit/s\"], []]}\n")
	want := []string{"1", "2,4", "{from: 1, to: 4, by: x2}"}
	for i, v := range s.Variants() {
		if v.Levels[0] != want[i/2] || v.Levels[1] != "two lines" || len([]rune(v.Levels[2])) > longestName || v.Levels[2] == "" {
			t.Errorf("%q", v.Levels)
		}
	}
}

func TestAnywhere(t *testing.T) {
	s, err := Parse("dir/s.yaml", []byte("target: http://a/\nauth: {method: token, token_file: t, ca_dir: /etc/ca}\n"), nil, nil)
	require.NoError(t, err)
	p, err := s.Plan(drivers())
	require.NoError(t, err)
	if err := p.Anywhere(); err != nil || !filepath.IsAbs(p.Auth.TokenFile) || !strings.HasSuffix(p.Auth.TokenFile, "/dir/t") ||
		p.Auth.CADir != "/etc/ca" || p.Files.List != "" {
		t.Errorf("%+v, %v", p, err)
	}
}
