package export_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
	"weir/loadtest/export"
	"weir/loadtest/export/exporttest"
	"weir/loadtest/results"
)

func page(t *testing.T, dir string) *export.Page {
	t.Helper()
	p, err := export.Listen(t.Context(), "0")
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if dir != "" {
		require.NoError(t, p.Show(dir))
	}
	return p
}

// fetched requests the page in a format.
func fetched(t *testing.T, p *export.Page, accept string) (code int, kind, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL(), nil)
	require.NoError(t, err)
	req.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, errors.Join(err, resp.Body.Close()))
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(body)
}

// The page passes the lint of Prometheus' own tool, and its own parser; weird names are preserved.
func TestPage(t *testing.T) {
	p := page(t, made(t))
	p.Linger(t.Context(), analysis.Analyze, func(time.Duration) { t.Error("nobody is to be waited for") }) // adds the findings
	code, kind, text := fetched(t, p, "")
	if code != http.StatusOK || !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Fatalf("%d %s %s", code, kind, text)
	}
	families := exporttest.Families(t, text)
	if _, series := exporttest.Sum(families["weir_moved_bytes_total"], "server", weird); series == 0 {
		t.Error("the weird name is not there")
	}
	for _, m := range export.Table() {
		if f := families[m.Name]; f != nil && (f.GetHelp() != m.Help || !strings.EqualFold(f.GetType().String(), m.Type.String())) {
			t.Errorf("%s: %v %q", m.Name, f.GetType(), f.GetHelp())
		}
	}
	_, kind, text = fetched(t, p, "application/openmetrics-text;version=1.0.0")
	if !strings.HasPrefix(kind, "application/openmetrics-text; version=1.0.0") || !strings.HasSuffix(text, "# EOF\n") {
		t.Errorf("%s ... %s", kind, text[max(0, len(text)-100):])
	}
}

func TestPageBeforeARunAndOfADamagedOne(t *testing.T) {
	if code, _, text := fetched(t, page(t, ""), ""); code != http.StatusServiceUnavailable || !strings.Contains(text, "has not begun") {
		t.Errorf("%d %s", code, text)
	}
	dir := made(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, results.EventsFile), []byte("{]\n"), 0o600))
	if code, _, text := fetched(t, page(t, dir), ""); code != http.StatusServiceUnavailable || !strings.Contains(text, "events.jsonl:1") {
		t.Errorf("%d %s", code, text)
	}
	if _, err := export.Listen(t.Context(), "nowhere.invalid:1"); err == nil {
		t.Error("an address that is not ours: no error")
	}
	if p := page(t, ""); !strings.HasPrefix(p.URL(), "http://127.0.0.1:") {
		t.Errorf("not on the loopback interface: %s", p.URL())
	}
}

// At the end, the page waits once for a client that fetches it regularly.
func TestPageLingers(t *testing.T) {
	p := page(t, made(t))
	fetched(t, p, "")
	<-time.After(20 * time.Millisecond)
	fetched(t, p, "")
	over := make(chan struct{})
	go func() {
		defer close(over)
		p.Linger(t.Context(), analysis.Analyze, func(time.Duration) {})
	}()
	for {
		_, _, text := fetched(t, p, "")
		if strings.Contains(text, "weir_validity{") {
			break
		}
	}
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("it waits although the end was fetched")
	}
}

// The names conform to the conventions of Prometheus
// (https://prometheus.io/docs/practices/naming/), and each has one meaning.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range export.Table() {
		switch {
		case seen[m.Name]:
			t.Errorf("%s: twice", m.Name)
		case !regexp.MustCompile(`^weir_[a-z][a-z0-9_]*$`).MatchString(m.Name):
			t.Errorf("%s: no name", m.Name)
		case strings.HasSuffix(m.Name, "_total") != (m.Type == export.Counter):
			t.Errorf("%s: a %s", m.Name, m.Type)
		case m.Type == export.Histogram && !strings.HasSuffix(m.Name, "_seconds"):
			t.Errorf("%s: no unit", m.Name)
		case m.Help == "" || !strings.HasSuffix(m.Help, ".") || strings.ContainsAny(m.Help, "\"\\\n"):
			t.Errorf("%s: help %q", m.Name, m.Help)
		case !strings.HasPrefix(m.Group, "weir_"):
			t.Errorf("%s: group %q", m.Name, m.Group)
		}
		seen[m.Name] = true
	}
}

// The tables of docs/metrics.md are generated from the metrics: a section for each group, with the
// labels that its metrics share.
func TestMetricsAreDocumented(t *testing.T) {
	const path = "../../docs/metrics.md"
	text := require.File(t, path)
	head, _, ok := strings.Cut(string(text), "<!-- metrics -->\n")
	if !ok {
		t.Fatalf("%s has no line <!-- metrics -->", path)
	}
	want := head + "<!-- metrics -->\n" + metricTables()
	if os.Getenv("WEIR_UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
	} else if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s differs from the metrics (WEIR_UPDATE=1 writes it; -want +got):\n%s", path, diff)
	}
	for _, m := range export.Table() {
		if !strings.Contains(head, "](#"+m.Group+")") {
			t.Errorf("%s: the table of contents has no link to %s", path, m.Group)
		}
	}
}

// metricTables returns a section for each group of metrics.
func metricTables() string {
	var b strings.Builder
	group, common := "", 0
	for _, m := range export.Table() {
		if m.Group != group {
			group, common = m.Group, len(m.Labels)
			for _, o := range export.Table() {
				if o.Group == group {
					common = min(common, len(o.Labels))
				}
			}
			fmt.Fprintf(&b, "\n## %s\n\n", group)
			if common > 0 {
				fmt.Fprintf(&b, "Labels: `%s`.\n\n", strings.Join(m.Labels[:common], "`, `"))
			}
			b.WriteString("| metric | type | description |\n|---|---|---|\n")
		}
		kind := m.Type.String()
		if more := m.Labels[common:]; len(more) > 0 {
			kind += " by `" + strings.Join(more, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.Name, kind, m.Help)
	}
	return b.String()
}

// Expressions of the dashboard contain only names of metrics that runs have.
func TestDashboardNamesMetrics(t *testing.T) {
	exported := map[string]bool{}
	for _, m := range export.Table() {
		exported[m.Name] = m.Type != export.Histogram
		if m.Type == export.Histogram {
			exported[m.Name+"_bucket"], exported[m.Name+"_sum"], exported[m.Name+"_count"] = true, true, true
		}
	}
	found := regexp.MustCompile(`"expr": .*`).FindAllString(export.Grafana(), -1)
	if len(found) < 40 {
		t.Errorf("%d expressions", len(found))
	}
	for _, expr := range found {
		for _, name := range regexp.MustCompile(`weir_\w+`).FindAllString(expr, -1) {
			if !exported[name] {
				t.Errorf("there is no metric %s: %s", name, expr)
			}
		}
	}
}

// The values of an active run are fetched and sent as far as they exist; the rest follows.
func TestRunThatGoesOn(t *testing.T) {
	prom := labtest.Start(t, lab.PrometheusConfig{})
	whole, dir := made(t), filepath.Join(t.TempDir(), "run")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for _, name := range []string{results.AboutFile, results.PlanFile} {
		part(t, whole, dir, name, 1)
	}
	s, err := export.Send(t.Context(), dir, remoteTo(t, prom.URLs["write"]), export.Options{Every: 5 * time.Millisecond})
	require.NoError(t, err)
	p := page(t, dir)
	for _, share := range []float64{0.1, 0.33, 0.5, 0.77, 0.9, 1} {
		for _, name := range []string{results.EventsFile, results.IntervalsFile, results.HostsFile} {
			part(t, whole, dir, name, share)
		}
		if code, _, text := fetched(t, p, ""); code != http.StatusOK {
			t.Fatalf("%d %s", code, text)
		}
		<-time.After(20 * time.Millisecond)
	}
	if r := s.Finish(time.Minute, 0); r.Refused+r.Left > 0 || r.Err != nil {
		t.Fatalf("%+v", r)
	}
	exporttest.Prometheus(t, prom.URL, exporttest.TruthOf(t, dir))
}

// part copies the first part of a file of one run to another run.
func part(t *testing.T, from, to, name string, share float64) {
	t.Helper()
	text := require.File(t, filepath.Join(from, name))
	f, err := os.OpenFile(filepath.Join(to, name), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	require.NoError(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	_, err = f.Write(text[info.Size():int(share*float64(len(text)))])
	require.NoError(t, errors.Join(err, f.Close()))
}

// The panels of the dashboard do not overlap, and have units.
func TestDashboardIsLaidOut(t *testing.T) {
	var board struct {
		Panels []struct {
			ID          int
			Title, Type string
			GridPos     struct{ X, Y, W, H int }
			FieldConfig struct{ Defaults struct{ Unit string } }
			Targets     []struct{ RefID, Expr string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(export.Grafana()), &board))
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range board.Panels {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies upon %s at %d,%d", p.Title, other, x, y)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && (p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0) {
			t.Errorf("%s: unit %q, %d queries", p.Title, p.FieldConfig.Defaults.Unit, len(p.Targets))
		}
		for _, q := range p.Targets {
			if !strings.Contains(q.Expr, `run="$run"`) || strings.Contains(q.Expr, "RUN") {
				t.Errorf("%s: %s", p.Title, q.Expr)
			}
		}
	}
	if len(board.Panels) < 20 {
		t.Errorf("%d panels", len(board.Panels))
	}
}
