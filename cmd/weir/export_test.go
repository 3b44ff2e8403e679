package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/link"
	"weir/loadtest/export"
	"weir/loadtest/export/exporttest"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// metricsPage starts weir and returns its process and the address of its page.
func metricsPage(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "weir", args...)
	out, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "metrics "); ok {
			u, err := url.Parse(strings.TrimSpace(at))
			require.NoError(t, err)
			go io.Copy(io.Discard, out)
			return cmd, u.Host
		}
	}
	t.Fatal("it says no address")
	return nil, ""
}

// One Prometheus fetches a real run, which is also sent to another Prometheus and to InfluxDB. All
// three servers have the same values as the run directory.
func TestNumbersOfARun(t *testing.T) {
	t.Parallel()
	to, db := labtest.Start(t, lab.PrometheusConfig{}), labtest.Start(t, lab.InfluxConfig{})
	exporttest.NewDatabase(t, db.URL, "weir")
	dir := filepath.Join(t.TempDir(), "run")
	// Prometheus begins to fetch after five seconds.
	cmd, page := metricsPage(t, "run", "--clients", "1,2,4", "--duration", "4s", "--set", "workload.think=5ms", "--out", dir,
		"--metrics", "127.0.0.1:0", "--remote-write", to.URLs["write"], "--influx", db.URL+"/write?db=weir")
	from := labtest.Start(t, lab.PrometheusConfig{Scrape: []string{page}})
	if err := cmd.Wait(); err != nil && exitCode(cmd.ProcessState.ExitCode()) != exitInvalid {
		t.Fatal(err)
	}
	w := exporttest.TruthOf(t, dir)
	if len(w.Found.Curve) != 3 || w.Moved[""] == 0 {
		t.Fatalf("the run has %d steps and moved %v bytes", len(w.Found.Curve), w.Moved)
	}
	t.Run("fetched", func(t *testing.T) { exporttest.Prometheus(t, from.URL, w) })
	t.Run("remote write", func(t *testing.T) { exporttest.Prometheus(t, to.URL, w) })
	t.Run("InfluxDB", func(t *testing.T) { exporttest.InfluxDB(t, db.URL, w) })
	t.Run("dashboard", func(t *testing.T) { everyPanel(t, to.URL, w, "", 30) })
	t.Run("dashboard of what was fetched", func(t *testing.T) { everyPanel(t, from.URL, w, "", 30) })
}

// panelKind returns the kind of runs that have the metrics of a query: jobs (and emulated links),
// challenge, or "" for all runs.
func panelKind(expr string) string {
	switch {
	case regexp.MustCompile(`weir_link_(target|moved)`).MatchString(expr):
		return "challenge"
	case regexp.MustCompile(`weir_(job|events_done|link)`).MatchString(expr):
		return "jobs"
	}
	return ""
}

// everyPanel sends the queries of the dashboard's panels of a kind, and fails t unless each query has
// a result, and there are at least so many.
func everyPanel(t *testing.T, server string, w exporttest.Truth, kind string, least int) {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct {
				Expr    string
				Instant bool
			}
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Annotations struct{ List []struct{ Name, Expr string } }
	}
	require.NoError(t, json.Unmarshal([]byte(export.Grafana()), &board))
	var runs struct{ Data []string }
	exporttest.Get(t, server+"/api/v1/label/run/values?match[]=weir_run_info", &runs)
	if len(runs.Data) != 1 || runs.Data[0] != w.Found.Run {
		t.Fatalf("variable run: %v", runs.Data)
	}
	fill := strings.NewReplacer("$run", w.Found.Run, "$window", "5s", "$__range", "1h")
	asked := 0
	check := func(title, expr string, instant bool) {
		expr = fill.Replace(expr)
		if strings.Contains(expr, "$") {
			t.Errorf("%s: a variable is not known: %s", title, expr)
		}
		at := w.End.Add(2 * time.Second)
		var answer struct {
			Data struct{ Result []json.RawMessage }
		}
		q := server + "/api/v1/query_range?query=" + url.QueryEscape(expr) + fmt.Sprintf("&start=%d&end=%d&step=1", at.Unix()-30, at.Unix())
		if instant {
			q = server + "/api/v1/query?query=" + url.QueryEscape(expr) + fmt.Sprintf("&time=%d", at.Unix()+60)
		}
		exporttest.Get(t, q, &answer)
		if len(answer.Data.Result) == 0 {
			t.Errorf("%s: nothing is known of %s", title, expr)
		}
		asked++
	}
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			if regexp.MustCompile(`weir_disk`).MatchString(q.Expr) && !w.Disks {
				continue // this machine provides no figures of disks
			}
			if panelKind(q.Expr) != kind {
				continue
			}
			check(p.Title, q.Expr, q.Instant)
		}
	}
	for _, a := range board.Annotations.List {
		if kind == "challenge" {
			break // its last stage began long before its end
		}
		check(a.Name, a.Expr, false)
	}
	if asked < least {
		t.Errorf("only %d queries", asked)
	}
}

// The panels of jobs and links have data if a run has jobs and links.
func TestDashboardOfJobs(t *testing.T) {
	tier.Full(t, "panels of jobs in Grafana's dashboard")
	t.Parallel()
	to := labtest.Start(t, lab.PrometheusConfig{})
	s, dir := resultstest.Farm(), filepath.Join(t.TempDir(), "run")
	s.Clients, s.Duration, s.Jobs.Job.Events = []int{10, 40}, 20, 20
	s.Sample = func(v *monitor.Sample) { v.Link = &monitor.Link{ToClients: link.Traffic{Busy: 0.5}} }
	require.NoError(t, s.Write(dir))
	if code, said := weir(t, "export", dir, "--remote-write", to.URLs["write"]); code != exitFine {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	everyPanel(t, to.URL, exporttest.TruthOf(t, dir), "jobs", 11)
}

// The panels of a data challenge have results for a challenge in Prometheus.
func TestDashboardOfAChallenge(t *testing.T) {
	tier.Slow(t, "starts Prometheus")
	t.Parallel()
	to := labtest.Start(t, lab.PrometheusConfig{})
	c, dir := resultstest.Rehearsal(), filepath.Join(t.TempDir(), "run")
	c.Minutes = 12
	require.NoError(t, c.Write(dir))
	if code, said := weir(t, "export", dir, "--remote-write", to.URLs["write"]); code != exitFine {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	everyPanel(t, to.URL, exporttest.TruthOf(t, dir), "challenge", 3)
}

// The commands of docs/seeing.md about numbers work as written, except for addresses, which are
// replaced by the addresses of real servers. The page's queries of InfluxDB work as well.
func TestNumbersInDocs(t *testing.T) {
	tier.Full(t, "the page, line by line")
	t.Parallel()
	labtest.Need(t, "promtool")
	section := section(t, "seeing.md", "## Numbers for other tools")
	db := labtest.Start(t, lab.InfluxConfig{})
	exporttest.NewDatabase(t, db.URL, "weir")
	dir := t.TempDir()
	scenario := "name: numbers\ntarget: simulated://demo?servers=2&service=5ms\nload: {clients: [1, 2], ramp: 0s, warmup: 0s, duration: 2s}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scenario.yaml"), []byte(scenario), 0o600))
	ran := 0
	for _, m := range regexp.MustCompile(`(?m)^\$ (.*)`).FindAllStringSubmatch(section, -1) {
		// Each command gets a server of its own, because a server rejects values that it has
		// already.
		prom := labtest.Start(t, lab.PrometheusConfig{})
		command := strings.NewReplacer("http://127.0.0.1:9090", prom.URL, "http://127.0.0.1:8086", db.URL, "--metrics 9095",
			"--metrics 0").Replace(m[1])
		code, said := start(t, dir, "sh", "-c", command).ended()
		if code != exitFine && (code != exitInvalid || !strings.HasPrefix(command, "weir run")) || strings.Contains(said, "could not") {
			t.Errorf("%s: exit code %d\n%s", command, code, said)
		}
		ran++
	}
	if ran < 9 {
		t.Errorf("only %d commands", ran)
	}
	queries := regexp.MustCompile("(?s)```sql\n(.*?)```").FindStringSubmatch(section)
	if queries == nil {
		t.Fatal("no queries")
	}
	for line := range strings.Lines(queries[1]) {
		q := strings.ReplaceAll(strings.TrimSpace(line), "$timeFilter", "time > now() - 1h AND time < now() + 1m")
		var answer struct {
			Results []struct {
				Error  string
				Series []json.RawMessage
			}
		}
		exporttest.Get(t, db.URL+"/query?db=weir&q="+url.QueryEscape(q), &answer)
		if len(answer.Results) != 1 || answer.Results[0].Error != "" || len(answer.Results[0].Series) == 0 {
			t.Errorf("%s: %+v", q, answer)
		}
	}
}

// weir export --follow sends a run of another process up to its end, here by kill -9. InfluxDB,
// which fails in between, has all values of the run directory.
func TestExportFollowsARunThatIsKilled(t *testing.T) {
	t.Parallel()
	prom, db := labtest.Start(t, lab.PrometheusConfig{}), labtest.Start(t, lab.InfluxConfig{})
	exporttest.NewDatabase(t, db.URL, "weir")
	dir := filepath.Join(t.TempDir(), "run")
	run := started(t, "run", "--clients", "1,2", "--duration", "20s", "--set", "workload.think=5ms", "--out", dir, "--quiet")
	untilHeld(t, dir, 1)
	follower := started(t, "export", dir, "--follow", "--remote-write", prom.URLs["write"], "--influx", db.URL+"/write?db=weir")
	known := func() bool { return len(exporttest.Ask(t, prom.URL, "weir_clients", "run", time.Now())) > 0 }
	require.Eventually(t, "the database knows the run", known)
	db.Kill() // it is restarted below
	seconds := func() int {
		text := require.File(t, filepath.Join(dir, results.IntervalsFile))
		return strings.Count(string(text), "\n")
	}
	before := seconds()
	require.Eventually(t, "three more seconds", func() bool { return seconds() > before+3 })
	require.NoError(t, db.Restart(t.Context()))
	run.kill(t)
	if code, said := follower.ended(); code != exitFine {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	w := exporttest.TruthOf(t, dir)
	exporttest.Prometheus(t, prom.URL, w)
	exporttest.InfluxDB(t, db.URL, w)
}
