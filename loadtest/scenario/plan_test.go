package scenario

import (
	"bytes"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/require"
	"weir/storage"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want := require.File(t, path)
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (run with -update if this is meant):\n%s", path, d)
	}
}

func plan(t *testing.T, text string, sets ...string) *Plan {
	t.Helper()
	p, err := parse(t, text, sets...).Plan(drivers())
	require.NoError(t, err)
	return p
}

func TestDefaultTakesHalfAMinute(t *testing.T) {
	for _, target := range []string{BuiltIn, "http://localhost/x", "simulated://demo?servers=4", "file:///tmp"} {
		p, err := defaultFor(target).Plan(drivers())
		require.NoError(t, err)
		if d := p.Time(); d < 25*time.Second || d > 35*time.Second || len(p.Steps) != 9 || p.Steps[8].Clients != 256 || !p.Files.Listing {
			t.Errorf("%s: %v, %d steps, %+v", target, d, len(p.Steps), p.Files)
		}
		if p.Hosts[0].Role != "both" {
			t.Errorf("%s: role %s", target, p.Hosts[0].Role)
		}
	}
	s, err := DefaultWith("http://far.example.org/", []string{"load.clients=1,10,100", "load.duration=10s", "workload.kind=write"})
	require.NoError(t, err)
	p, err := s.Plan(drivers())
	if err != nil || len(p.Steps) != 3 || p.Steps[0].Duration != seconds(10) || p.Work.Size.Fixed != 1<<20 || p.Files.Listing ||
		p.Hosts[0].Role != "client" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := DefaultWith("http://a/", []string{"load.duraton=10s"}); err == nil || err.Error() != "--set load.duraton: "+
		"unknown key load.duraton; did you mean duration?" {
		t.Error(err)
	}
}

func TestPlanAsksTheDriver(t *testing.T) {
	for text, want := range map[string]string{
		"target: htp://a/\n":    `s.yaml:1:9: target: unknown scheme "htp"; did you mean http?`,
		"target: gopher://a/\n": `s.yaml:1:9: target: unknown scheme "gopher"; use one of http, https, dav, davs, file, simulated`,
		"target: gsiftp://a/\n": `s.yaml:1:9: target: weir has no client for gsiftp://; name a program that has, as in client: gfal-copy`,
		"target: root://a/\n":   `s.yaml:1:9: target: weir has no client for root://; name a program that has, as in client: xrdcp`,
		"target: root://a/\nclient: xrdcp\nworkload: {kind: login}\n":               `s.yaml:3:18: workload.kind: clients of command cannot login: they can read, write`,
		"target: root://a/\nclient: {command: [x, \"{source}\"]}\n":                 `s.yaml:2:19: client.command: has {source}, so it writes; use workload.kind write, or {dest} for the file that is read`,
		"target: root://a/\nclient: {command: [x]}\nworkload: {kind: write}\n":      `s.yaml:2:19: client.command: has no {source}, so it only reads; name the file to write with {source}`,
		"target: ftp://a/\nclient: curl\nworkload: {kind: metadata}\n":              `s.yaml:3:12: workload.mix.list: clients of command cannot list: they can read, write`,
		"target: http://a/\nworkload: {kind: metadata, mix: {locate: 1}}\n":         `s.yaml:2:42: workload.mix.locate: clients of webdav cannot locate: they can read, write, stat, list, mkdir, remove, checksum, login`,
		"target: http://a/\nworkload: {kind: metadata, mix: {mkdir: 1, move: 1}}\n": `s.yaml:2:50: workload.mix.move: clients of webdav cannot move: they can read, write, stat, list, mkdir, remove, checksum, login`,
		"target: root://a/\nclient: xrdcp\nworkload: {kind: login}\n\n":             `s.yaml:3:18: workload.kind: clients of command cannot login: they can read, write`,
	} {
		_, err := parse(t, text).Plan(drivers())
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
	_, err := parse(t, "target: root://a/\nclient: xrdcp\n").Plan(drivers()[:1])
	if err == nil || err.Error() != `s.yaml:2:9: client: this program cannot run external programs; omit client` {
		t.Error(err)
	}
	s := defaultFor("http://a/")
	s.Load.Duration = 0
	s.Work.Kind = "x"
	if _, err := s.Plan(drivers()); err == nil || !strings.Contains(err.Error(), "load.duration: must be above 0") ||
		!strings.Contains(err.Error(), `workload.kind: unknown kind "x"`) {
		t.Error(err)
	}
}

// The plan names the settings that make a result incomparable with other results.
func TestWaysOfWorkingAreNamed(t *testing.T) {
	rooted := append(drivers(), storage.Driver{Name: "xrootd", Schemes: []string{"root", "roots", "xroot", "xroots"},
		Kinds: drivers()[0].Kinds})
	for text, want := range map[string]string{
		"target: root://a/\nworkload: {kind: read}\n": "read, pick random, session kept, think 0s",
		"target: root://a/\nworkload: {kind: read, plain: true}\n": "session kept, " +
			"plain reads (no page checksums), think",
		"target: xroots://a/\nworkload: {kind: write, plain: true}\n": "session kept, " +
			"plain writes (no page checksums), think",
		"target: root://a/\nworkload: {kind: mix, mix: {read: 1, write: 1}, plain: true}\n": "session kept, plain reads and writes (no " +
			"page checksums), think",
		"target: root://a/\nworkload: {keep_open: true, session: shared, plain: true}\n": "one shared session, " +
			"plain reads (no page checksums), files stay open, think",
		"target: simulated://x?servers=1\nworkload: {session: shared, plain: true}\n": "pick random, one shared session, think",
		"target: http://a/\nworkload: {keep_open: true, plain: true}\n":               "pick random, session kept, think",
		"target: root://a/\nworkload: {kind: mix, mix: {stat: 1, locate: 1}, session: shared}\n": "mix (locate 1, stat 1), pick random, " +
			"one shared session, think",
	} {
		d := rooted
		if strings.Contains(text, "locate") {
			d = slices.Clone(rooted)
			d[len(d)-1].Kinds = append(slices.Clone(d[0].Kinds), storage.Locate)
		}
		p, err := parse(t, text).Plan(slices.DeleteFunc(slices.Clone(d), func(d storage.Driver) bool { return d.Name == "command" }))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := p.WorkText(); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", text, got, want)
		}
		if strings.Contains(text, "locate") && !p.Files.Listing {
			t.Error("locate has no files to ask for")
		}
	}
}

// Paths of credentials are relative to the scenario's folder.
func TestKerberosFilesAreFound(t *testing.T) {
	s, err := Parse("/etc/weir/s.yaml", []byte("target: root://a/\nauth: {method: krb5, user: w@X, keytab_file: w.keytab, "+
		"krb5_file: ../krb5.conf}\n"), nil, nil)
	require.NoError(t, err)
	if s.Auth.KeytabFile != "/etc/weir/w.keytab" || s.Auth.Krb5File != "/etc/krb5.conf" {
		t.Errorf("%+v", s.Auth)
	}
	for _, auth := range []string{"{method: krb5}", "{method: krb5, ticket_file: cc}", "{method: krb5, krb5_file: k}"} {
		if _, err := Parse("/etc/weir/s.yaml", []byte("target: root://a/\nauth: "+auth+"\n"), nil, nil); err != nil {
			t.Errorf("%s: %v", auth, err)
		}
	}
}

const openPlan = `
name: open
target: http://localhost/data
auth: {method: basic, user: ada, password_variable: PW}
files: {make: {count: 3, size: {uniform: [1MB, 2MB]}}}
workload: {kind: read, part: {size: 64KiB, count: 4}, think: {exponential: 2s}, retries: 1}
load: {rate: [10/s, 20/s], arrivals: poisson, ramp: 0, warmup: 5s, duration: 10s}
stop: {time: 1h, count: 100000, bytes: 1TB, error_ratio: 50%}
thresholds: [error_ratio < 1%]
`

func TestPlanFiles(t *testing.T) {
	for name, p := range map[string]*Plan{"default": plan(t, "target: built-in\n"), "open": plan(t, openPlan)} {
		var js, text bytes.Buffer
		require.NoError(t, p.WriteJSON(&js))
		require.NoError(t, p.WriteText(&text))
		golden(t, name+".plan.json", js.Bytes())
		golden(t, name+".plan.txt", text.Bytes())
		back, err := ReadPlan(filepath.Join("testdata", name+".plan.json"))
		require.NoError(t, err)
		if d := cmp.Diff(p, back); d != "" {
			t.Errorf("%s reads back otherwise:\n%s", name, d)
		}
	}
}

func TestPlansAreReadStrictly(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, plan(t, "target: built-in\n").WriteJSON(&b))
	good := b.String()
	change := func(from, to string) string {
		if !strings.Contains(good, from) {
			t.Fatalf("the plan has no %s", from)
		}
		return strings.Replace(good, from, to, 1)
	}
	for text, want := range map[string]string{
		"":                                     "this is no plan: unexpected end of JSON input",
		"{}":                                   "this is no plan: it has no version; a scenario is made into a plan with weir plan",
		"target: x":                            "this is no plan: invalid character",
		change(`"version": 2`, `"version":3`):  "the plan has version 3, this program reads version 2: use a newer weir",
		change(`"version": 2`, `"version":0`):  "the plan has version 0, this program reads version 2: it was written before the first release",
		change(`"seed"`, `"sed"`):              `plan: json: unknown field "sed"`,
		change(`"closed"`, `"clsd"`):           `plan: model "clsd": use closed or open`,
		change(`"10s"`, `"0s"`):                "plan: step 1: duration 0s",
		change(`"10s"`, `"10"`):                `plan: "10" has no unit; write a duration as in 1.5s, 250ms, 60m or 2d`,
		change(`"step": 2`, `"step": 3`):       "plan: step 2 has the number 3",
		change(`"clients": 2`, `"clients":-2`): "plan: step 2: -2 clients",
		change(`"read"`, `"raed"`):             `workload.kind: unknown kind "raed"`,
		good + "{}":                            "this is no plan: invalid character '{' after top-level value",
	} {
		_, err := parsePlan([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60q\ngot  %v\nwant %s", text, err, want)
		}
	}
	if _, err := ReadPlan("testdata/none.json"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestThresholds(t *testing.T) {
	q := func(name string) Quantity {
		got, err := findQuantity(name)
		require.NoError(t, err)
		return got
	}
	for text, want := range map[string]Threshold{
		"throughput > 8 Gbit/s at 2000 clients": {Measure: q("throughput"), Sign: ">", Value: 1e9, Clients: 2000},
		"error_ratio < 1%":                      {Measure: q("error_ratio"), Sign: "<", Value: 0.01},
		"latency_p99 <= 250ms at 1 client":      {Measure: q("latency_p99"), Sign: "<=", Value: 0.25, Clients: 1},
		"rate >= 600/min":                       {Measure: q("rate"), Sign: ">=", Value: 10},
		"p99 < 2s":                              {Measure: q("latency_p99"), Sign: "<", Value: 2},
		"  p99 < 2 s or stop ":                  {Measure: q("latency_p99"), Sign: "<", Value: 2, Stop: true},
		"p50 < 2s at 200/s or stop":             {Measure: q("latency_p50"), Sign: "<", Value: 2, Rate: 200, Stop: true},
		"p999 < 2s at the optimum":              {Measure: q("latency_p999"), Sign: "<", Value: 2, Optimum: true},
		"optimum.clients > 2000":                {Measure: q("optimum.clients"), Sign: ">", Value: 2000},
		"optimum.throughput > 8 Gbit/s":         {Measure: q("optimum.throughput"), Sign: ">", Value: 1e9},
		"knee.clients > 20 clients":             {Measure: q("knee.clients"), Sign: ">", Value: 20},
		"server_cpu < 80%":                      {Measure: q("server_cpu"), Sign: "<", Value: 0.8},
	} {
		if got, err := ParseThreshold(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "with spaces", "throughput": "with spaces", "throughput>8Gbit/s": "with spaces", "throughput = 1Gbit/s": "with spaces",
		"rate > 1/s at": "a rate as in", "rate > 1/s at 5": "at 2000 clients", "rate > 1/s at 0 clients": "at least one client",
		"rate > 1/s at 0/s": "more than 0", "rate > 1/s at optimum": "at the optimum", "rate > 1/s at 5 clients at 6 clients": "at 2000 clients",
		"latency > 1s": "unknown measure", "p98 < 1s": "did you mean p9", "rate > 1s": "did you mean 1/s",
		"optimum.clients > 2Gbit/s": "a number such as 2000",
		"optimum.clients > -1":      "a number", "optimum.clients > NaN": "a number", "optimum.clients > 5 at 5 clients": "whole run",
		"optimum.clients > 5 or stop": "only after the run", "server_cpu < 5% or stop": "only after the run",
		"p99 < 1s at the optimum or stop": "only after the run", "bandwidth > 1Gbit/s": "use one of throughput, per_client",
		"p99 < 1s or": "a duration",
	} {
		if got, err := ParseThreshold(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %v, %v; want an error with %q", text, got, err, want)
		}
	}
}

func TestEveryQuantityIsReadAndWritten(t *testing.T) {
	for _, q := range Quantities() {
		text := q.Format(0.5)
		if q.Unit == Clients {
			text = q.Format(2)
		}
		if got, err := ParseThreshold(q.Name + " > " + text); err != nil || got.Measure != q || got.Value != 0.5 && got.Value != 2 {
			if q.Unit != Speed { // whole bits only
				t.Errorf("%s > %s: %+v, %v", q.Name, text, got, err)
			}
		}
	}
}

func FuzzParseThreshold(f *testing.F) {
	for _, text := range []string{"throughput > 8 Gbit/s at 2000 clients or stop", "p99 < 2s at 200/s", "optimum.clients > 2000",
		"rate < 1/s at the optimum", " at  or stop"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseThreshold(text)
		if err == nil && (math.IsNaN(got.Value) || math.IsInf(got.Value, 0) || got.Value < 0) {
			t.Errorf("%q is read as %+v", text, got)
		}
	})
}

func TestDriversKindsAreNamed(t *testing.T) {
	if got := kindList([]storage.Kind{storage.Read, storage.Login}); got != "read, login" {
		t.Error(got)
	}
}

func FuzzParsePlan(f *testing.F) {
	for _, name := range []string{"default", "open"} {
		b, err := os.ReadFile(filepath.Join("testdata", name+".plan.json"))
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parsePlan(data)
		if err != nil {
			return
		}
		var b bytes.Buffer
		require.NoError(t, p.WriteJSON(&b))
		back, err := parsePlan(b.Bytes())
		if err != nil {
			t.Fatalf("%v\n%s", err, &b)
		}
		if d := cmp.Diff(p, back, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
		p.Files.List = ""
		require.NoError(t, p.WriteText(&b))
	})
}
