package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/results"
	"weir/loadtest/run/calibration"
)

// calibrated runs weir calibrate in a process of its own that uses no name server, if that is
// possible, and returns its result. Tests do not check the measured speeds.
func calibrated(t *testing.T, args ...string) (*calibration.Result, string) {
	t.Helper()
	return calibratedWith(t, lab.NoDNS, args...)
}

// calibratedWith is like calibrated, with other name servers if names can set them.
func calibratedWith(t *testing.T, names func(*exec.Cmd) error, args ...string) (*calibration.Result, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args = append([]string{"calibrate", "--out", dir, "--json", "--set", "load.warmup=200ms"}, args...)
	cmd := exec.CommandContext(ctx, "weir", args...)
	if err := names(cmd); err != nil {
		t.Logf("with the name servers of this machine: %v", err)
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), said.String())
	}
	r := &calibration.Result{}
	require.NoError(t, json.Unmarshal(out.Bytes(), r))
	text, err := os.ReadFile(filepath.Join(dir, "calibration.txt"))
	require.NoError(t, err)
	t.Logf("%s\n%s", said.String(), text)
	sound(t, r)
	for _, name := range []string{"weir", r.Program} {
		if _, err := results.Open(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, name, results.ReportFile)); err != nil {
			t.Error(err)
		}
	}
	return r, said.String()
}

// sound fails t unless the figures are plausible.
func sound(t *testing.T, r *calibration.Result) {
	t.Helper()
	if !r.Valid || len(r.Points) == 0 || len(r.Verdict) == 0 || r.Files[0] == 0 || r.Files[1] == 0 {
		t.Errorf("valid %v, %d points, files %v, verdict %q", r.Valid, len(r.Points), r.Files, r.Verdict)
	}
	for i := range r.Points {
		p := &r.Points[i]
		for _, f := range p.Figures {
			if x := f.Ratio; x != nil && !(x.Low > 0 && x.Low <= x.Value && x.Value <= x.High) {
				t.Errorf("%d clients, %s: %+v", p.Clients, f.Name, *x)
			}
		}
		for _, name := range []string{calibration.Rate, calibration.Throughput, calibration.Median, calibration.ClientByFile,
			calibration.ServerByFile} {
			coarse := name == calibration.ServerByFile && r.Servers == nil // hundredths of a second, which may be 0
			if p.Figure(name).Ratio == nil && !coarse {
				t.Errorf("%d clients: %s is not compared", p.Clients, name)
			}
		}
	}
}

// asked returns the number of requests of each side whose names begin with name.
func asked(w *calibration.Wire, name string) calibration.Both {
	var b calibration.Both
	for _, q := range w.Requests {
		if strings.HasPrefix(q.Name, name) {
			b.Weir, b.Real = b.Weir+q.Weir, b.Real+q.Real
		}
	}
	return b
}

// once fails t unless both sides sent one such request per file on average.
func once(t *testing.T, w *calibration.Wire, names ...string) {
	t.Helper()
	for _, name := range names {
		if b := asked(w, name); b.Differ() || b.Weir < 0.9 || b.Weir > 1.1 {
			t.Errorf("%s: %.3f and %.3f times a file, want once", name, b.Weir, b.Real)
		}
	}
}

func TestCalibrateXRootD(t *testing.T) {
	tier.Full(t, "xrdcp and gfal-copy beside weir's clients")
	t.Parallel()
	labtest.Need(t, "xrdcp", "xrdfs")
	s := labtest.Start(t, lab.XRootDConfig{})
	r, _ := calibrated(t, s.URL, "--clients", "2", "--rounds", "2", "--duration", "600ms", "--size", "256KiB")
	if r.Relay == nil || r.Servers == nil {
		t.Fatalf("relay %v, statistics %v; notes %q", r.Relay, r.Servers, r.Notes)
	}
	once(t, r.Relay, "connection", "protocol", "login", "open", "page read", "close")
	once(t, r.Servers, "connection", "login", "open", "read")
	for _, w := range []*calibration.Wire{r.Relay, r.Servers} {
		const size = 256 << 10
		for _, n := range []float64{w.Received.Weir, w.Received.Real} {
			if n < size || n > 1.02*size {
				t.Errorf("%.0f bytes received a file of %d", n, size)
			}
		}
	}
	if other := asked(r.Servers, "other"); other.Weir < 1.9 || other.Weir > 2.3 { // protocol, close; not calibrate's own queries
		t.Errorf("%.2f other requests a file", other.Weir)
	}
	empty(t, s.Data)
}

func TestCalibrateWriteXRootD(t *testing.T) {
	tier.Full(t, "xrdcp and gfal-copy beside weir's clients")
	t.Parallel()
	labtest.Need(t, "xrdcp", "xrdfs")
	s := labtest.Start(t, lab.XRootDConfig{})
	r, _ := calibrated(t, s.URL, "--kind", "write", "--plain", "--clients", "1", "--rounds", "1", "--duration", "500ms", "--size", "64KiB")
	once(t, r.Relay, "connection", "login", "open", "write", "close")
	if r.Relay.Sent.Weir < 64<<10 || !r.Plain {
		t.Errorf("%.0f bytes sent a file; plain: %v", r.Relay.Sent.Weir, r.Plain)
	}
	empty(t, s.Data)
}

// Behind a redirector only the first half passes through the relay. The servers provide the rest.
func TestCalibrateRedirected(t *testing.T) {
	tier.Full(t, "xrdcp and gfal-copy beside weir's clients")
	t.Parallel()
	labtest.Need(t, "xrdcp", "xrdfs")
	s := labtest.Start(t, lab.XRootDConfig{Servers: 2})
	r, _ := calibrated(t, s.URL, "--files", "4", "--size", "64KiB", "--clients", "1", "--rounds", "1", "--duration", "500ms")
	if r.Relay == nil || !r.Relay.Redirected || r.Servers == nil {
		t.Fatalf("%+v, %+v", r.Relay, r.Servers)
	}
	once(t, r.Servers, "redirect", "read")
	if b := asked(r.Servers, "open"); b.Differ() || b.Weir < 1.9 || b.Weir > 2.1 {
		t.Errorf("opens: %+v, want 2 a file, at the redirector and at a data server", b)
	}
}

func TestCalibrateNginx(t *testing.T) {
	t.Parallel()
	labtest.Need(t, "curl")
	s := labtest.Start(t, lab.NginxConfig{})
	r, _ := calibrated(t, s.URL, "--clients", "2", "--rounds", "2", "--duration", "600ms")
	if r.Relay == nil || r.Program != "curl" {
		t.Fatalf("no look: %q", r.Notes)
	}
	once(t, r.Relay, "connection", "GET")
	if len(r.Relay.Requests) != 2 {
		t.Errorf("requests: %+v", r.Relay.Requests)
	}
	empty(t, s.Data)
}

// A service that refuses writes is measured by reading its existing files.
func TestCalibrateReadOnly(t *testing.T) {
	t.Parallel()
	labtest.Need(t, "curl")
	s := labtest.Start(t, lab.NginxConfig{Extra: "if ($request_method ~ ^(PUT|MKCOL|DELETE)$) { return 403; }"})
	fill(t, s.Data, 10, 64<<10)
	r, said := calibrated(t, s.URL, "--clients", "1", "--rounds", "1", "--duration", "500ms")
	if !strings.Contains(said, "reading 10 that are there") {
		t.Errorf("said %q", said)
	}
	once(t, r.Relay, "GET")
}

// An interrupt ends the turns early. The measurements so far are compared, and no files are left
// behind.
func TestCalibrateInterrupted(t *testing.T) {
	labtest.Need(t, "curl")
	s := labtest.Start(t, lab.NginxConfig{})
	signals := make(chan os.Signal, 1)
	say := &waker{text: "round 1 of 90", wake: func() { signals <- os.Interrupt }}
	dir := filepath.Join(t.TempDir(), "out")
	var out bytes.Buffer
	code := execute(t.Context(), []string{"calibrate", s.URL, "--rounds", "90", "--clients", "1", "--duration", "300ms", "--set",
		"load.warmup=100ms", "--out", dir}, streams{in: strings.NewReader(""), out: &out, err: say}, func() <-chan os.Signal { return signals })
	if code != exitInterrupt || !strings.Contains(out.String(), "interrupted") || !strings.Contains(out.String(), "one round") {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
	empty(t, s.Data)
}

// A waker searches written text for a string, and calls wake once when it is found.
type waker struct {
	text string
	wake func()
	once sync.Once
}

func (w *waker) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.text) {
		w.once.Do(w.wake)
	}
	return len(p), nil
}

func TestCalibrateRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no target":       {nil, "calibrate --help"},
		"no URL":          {[]string{"here"}, "use the URL of the service"},
		"another scheme":  {[]string{"ftp://localhost/a"}, "root(s):// or http(s)://"},
		"another program": {[]string{"http://localhost/a", "--client", "wget"}, "use xrdcp, curl or gfal-copy"},
		"the wrong one":   {[]string{"http://localhost/a", "--client", "xrdcp"}, "xrdcp cannot speak http://"},
		"kind":            {[]string{"http://localhost/a", "--kind", "stat"}, "use read or write"},
		"rounds":          {[]string{"http://localhost/a", "--rounds", "0"}, "use 1 to 100"},
		"clients":         {[]string{"http://localhost/a", "--clients", "x"}, "clients"},
		"size":            {[]string{"http://localhost/a", "--size", "big"}, "size"},
		"plain":           {[]string{"http://localhost/a", "--plain"}, "--plain is for root://"},
		"list":            {[]string{"http://localhost/a", "--list", "missing.txt"}, "missing.txt"},
		"list to write":   {[]string{"http://localhost/a", "--list", "f", "--kind", "write"}, "--list is for"},
		"kind by set":     {[]string{"http://localhost/a", "--set", "workload.kind=stat"}, "kind"},
	} {
		t.Run(name, func(t *testing.T) {
			labtest.Need(t, "curl")
			t.Chdir(t.TempDir())
			code, said := weir(t, append([]string{"calibrate"}, c.args...)...)
			if code != exitUsage && name != "list" || !strings.Contains(said, c.want) {
				t.Errorf("exit code %d: %s", code, said)
			}
			if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		labtest.Need(t, "curl")
		code, said := weir(t, "calibrate", "http://127.0.0.1:1/data", "--out", filepath.Join(t.TempDir(), "o"))
		if code != exitError || !strings.Contains(said, "cannot be reached") {
			t.Errorf("exit code %d: %s", code, said)
		}
	})
}

// Every weir command of docs/calibration.md works with a shorter run.
func TestCalibrationPage(t *testing.T) {
	tier.Full(t, "the page, line by line")
	t.Parallel()
	labtest.Need(t, "xrdcp", "xrdfs", "gfal-copy")
	page := require.File(t, "../../docs/calibration.md")
	web, xrd := labtest.Start(t, lab.NginxConfig{}), labtest.Start(t, lab.XRootDConfig{})
	here := strings.NewReplacer("http://127.0.0.1:8080/data", web.URL, "root://127.0.0.1:1094//data", xrd.URLs["root"])
	ran := 0
	for text := range strings.Lines(here.Replace(string(page))) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(text), "$ weir calibrate "); ok {
			ran++
			calibrated(t, short("calibrate " + command)[1:]...)
		}
	}
	if ran < 4 {
		t.Errorf("only %d commands found", ran)
	}
	empty(t, web.Data)
	empty(t, xrd.Data)
}
