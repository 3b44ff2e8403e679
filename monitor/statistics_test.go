package monitor

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
)

// realStatistics reads the statistics of a real server.
func realStatistics(t testing.TB, name string) []byte {
	t.Helper()
	b := require.File(t, filepath.Join("testdata/xrootd", name))
	return b
}

func TestParseStatistics(t *testing.T) {
	s, err := parseStatistics(realStatistics(t, "server.xml"))
	require.NoError(t, err)
	want := &Service{
		Name: "host.example.org:32111", Program: "xrootd", Version: "v5.5.3", Kind: DataServer, Pid: 9001,
		User: 0.017119, System: 0.012839, Threads: 3, Idle: 1, Connected: 12, Received: 20994298, Sent: 20997573,
		Logins: 12, Errors: 1, Ops: map[string]int64{"open": 2, "read": 3, "write": 3, "other": 26},
	}
	if d := cmp.Diff(want, s.since(&statistics{}, 1)); d != "" {
		t.Error(d)
	}
	if got := want.Operations(); got != 34 {
		t.Errorf("%d operations", got)
	}
	for file, kind := range map[string]string{"redirector.xml": Redirector, "cmsd-manager.xml": ClusterManager,
		"cmsd-server.xml": ClusterManager} {
		s, err := parseStatistics(realStatistics(t, file))
		if err != nil {
			t.Fatal(file, err)
		}
		if got := s.kind(); got != kind || s.user()+s.system() <= 0 {
			t.Errorf("%s: kind %q, %v s of CPU time", file, got, s.user()+s.system())
		}
	}
}

func TestParseOddStatistics(t *testing.T) {
	const head = `<statistics tod="5" ver="v6.1.0" src="a:1" tos="2" pgm="xrootd" ins="i" pid="7" site="">`
	for _, c := range []struct {
		name, text string
		links      int64
		err        string
	}{
		{"a zero at its end", head + `<stats id="link"><num>3</num></stats></statistics>` + "\x00", 3, ""},
		{"cut off", head + `<stats id="link"><num>3</num><maxn>4`, 3, ""},
		{"cut off in a number", head + `<stats id="link"><num>3</num></stats><stats id="link"><num>99`, 3, ""},
		{"a path with a tag in it", head + `<stats id="oss"><lp>"/a<b>&"</lp></stats><stats id="link"><num>3</num></stats>`, 3, ""},
		{"unknown things", head + `<stats id="new" v="3"><x/><!-- - --><num>9</num></stats><stats id="link"><y>1</y><num> 3 </num></stats>`, 3,
			""},
		{"nested in another", head + `<stats id="oss"><stats id="link"><num>9</num></stats></stats><stats id="link"><num>3</num></stats>`, 3, ""},
		{"not a number", head + `<stats id="link"><num>many</num><maxn>1</maxn></stats>`, 0, ""},
		{"far too large", head + `<stats id="link"><num>99999999999999999999</num><maxn>1</maxn></stats>`, 0, ""},
		{"an end too many", head + `</x></stats><stats id="link"><num>3</num></stats>`, 3, ""},
		{"nothing in it", head + `</statistics>`, 0, "no known value"},
		{"what a server without memory says", `<statistics tod="0" ver="v5"></statistics>`, 0, "no known value"},
		{"a web page", `<html>`, 0, "start with"},
		{"nothing", ``, 0, "start with"},
		{"too deep", head + strings.Repeat("<a>", 50), 0, "in each other"},
		{"too long", head + strings.Repeat(" ", statisticsLimit), 0, "more than 256 KiB"},
		{"names of elements that are empty", head + `<stats id="">< >1</ ></stats><stats id="link"><num>3</num></stats>`, 3, ""},
		{"an add-on of version 6", `{"statistics":{"tod":5,"ver":"v6.1.0"}}`, 0, "add-on"},
	} {
		s, err := parseStatistics([]byte(c.text))
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v", c.name, err)
		case c.err == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.err == "" && s.values["link.num"] != c.links:
			t.Errorf("%s: %d links, want %d", c.name, s.values["link.num"], c.links)
		case c.err != "" && !errors.Is(err, errNoStatistics) && !errors.Is(err, errAddOn):
			t.Errorf("%s: %v is of no kind", c.name, err)
		}
	}
}

func TestRise(t *testing.T) {
	for _, c := range []struct {
		now, before, want int64
		wrong             bool
	}{
		{5, 3, 2, false}, {3, 3, 0, false}, {3, 5, 0, true},
		{-1 << 31, 1<<31 - 1, 1, false}, // a counter of 32 bits went on
		{-5, -7, 2, false},
		{1 << 62, -1 << 31, 1<<62 + 1<<31, true},
		{0, 1 << 40, 0, true},
	} {
		r := rises{seconds: 1}
		if got := roseOn(&r, c.now, c.before, mostEvents); got != c.want || r.wrong != c.wrong {
			t.Errorf("from %d to %d: %d, wrong %v", c.before, c.now, got, r.wrong)
		}
	}
}

func TestFollows(t *testing.T) {
	last := &statistics{name: "a:1", pid: 5, started: 100, reportedAt: 200}
	for _, c := range []struct {
		name string
		now  statistics
		want bool
	}{
		{"the same run", statistics{name: "a:1", pid: 5, started: 100, reportedAt: 201}, true},
		{"started again", statistics{name: "a:1", pid: 6, started: 201, reportedAt: 202}, true},
		{"another server of that name", statistics{name: "a:1", pid: 6, started: 150, reportedAt: 202}, false},
	} {
		if got := c.now.follows(last); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if last.follows(nil) {
		t.Error("the first one follows nothing")
	}
}

// The number of times that the limit of threads was met is counted as other events are.
func TestThreadLimit(t *testing.T) {
	limited := func(n string) *statistics {
		s, err := parseStatistics(bytes.Replace(realStatistics(t, "server.xml"), []byte("<tlimr>0</tlimr>"), []byte("<tlimr>"+n+"</tlimr>"), 1))
		require.NoError(t, err)
		return s
	}
	if n := limited("1207").since(limited("7"), 1).Limited; n != 1200 {
		t.Errorf("met %d times, want 1200", n)
	}
}

func FuzzStatistics(f *testing.F) {
	for _, name := range []string{"server.xml", "redirector.xml", "cmsd-manager.xml", "cmsd-server.xml"} {
		f.Add(realStatistics(f, name), realStatistics(f, "server.xml"))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		now, err := parseStatistics(a)
		if err != nil {
			return
		}
		before, err := parseStatistics(b)
		if err != nil {
			before = &statistics{}
		}
		s := now.since(before, 1)
		if s == nil {
			return
		}
		if _, err := json.Marshal(s); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int64{s.Connected, s.Received, s.Sent, s.Logins, s.Proven, s.Refused, s.Redirects, s.Errors, s.Waits, s.Async,
			s.Segments, s.Limited, s.Operations(), int64(s.Threads), int64(s.Queue)} {
			if n < 0 {
				t.Fatalf("%+v", s)
			}
		}
		if s.User < 0 || s.System < 0 || s.User > 1e9 {
			t.Fatalf("%+v", s)
		}
	})
}

func BenchmarkParseStatistics(b *testing.B) {
	text := realStatistics(b, "server.xml")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseStatistics(text); err != nil {
			b.Fatal(err)
		}
	}
}
