package coordinator

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer/metrics"
)

// dashboards fails t unless each expression of the dashboard and of the alert rules uses only
// metrics of a coordinator, and is accepted by a Prometheus that scrapes it. Panels about past
// events must show data.
func dashboards(t *testing.T, h *service) {
	t.Helper()
	labtest.Need(t, "promtool")
	raw, err := h.Admin()
	require.NoError(t, err)
	prom := labtest.Start(t, lab.PrometheusConfig{Scrape: []string{strings.TrimPrefix(h.URL(), "http://")}, Token: raw})
	until(t, "Prometheus has scraped the coordinator", func() bool {
		query := "count_over_time(weir_transfer_coordinator_info[1m]) >= 4"
		return strings.Contains(labtest.Get(t, prom.URL+"/api/v1/query?query="+url.QueryEscape(query)), `"value"`)
	})
	rules := "../../deploy/prometheus/weir.yml"
	if said, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", rules).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v: %s", err, said)
	}
	text, err := os.ReadFile(rules)
	require.NoError(t, err)
	scraped := h.scrape()
	named := func(where, expr string) {
		for _, name := range regexp.MustCompile(`weir_transfer_\w+`).FindAllString(expr, -1) {
			i := slices.IndexFunc(metrics.Table(), func(m metrics.Metric) bool {
				return m.Name == name || m.Type == metrics.Histogram && m.Name+"_bucket" == name
			})
			if i < 0 {
				t.Errorf("%s: there is no metric %s", where, name)
			} else if m := metrics.Table()[i]; scraped[m.Name] == nil && !slices.Contains(seldom(), metrics.ID(i)) {
				t.Errorf("%s: the coordinator does not have %s", where, name)
			}
		}
	}
	named(rules, string(text))
	for title, expr := range boardOf(t) {
		named(title, expr)
		var answer struct {
			Status, Error string
			Data          struct{ Result []json.RawMessage }
		}
		body := labtest.Get(t, prom.URL+"/api/v1/query?query="+url.QueryEscape(expr))
		if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Status != "success" {
			t.Errorf("%s: %v %s: %s", title, err, answer.Error, expr)
		}
		rare := slices.ContainsFunc(seldom(), func(m metrics.ID) bool { return strings.Contains(expr, metrics.Table()[m].Name) })
		if len(answer.Data.Result) == 0 && !rare && !strings.Contains(expr, "> 0") {
			t.Errorf("%s shows nothing: %s", title, expr)
		}
	}
}

// seldom returns the metrics that a healthy coordinator may lack.
func seldom() []metrics.ID {
	return []metrics.ID{metrics.Trouble, metrics.LimitChanges, metrics.SiteLimit, metrics.SiteRefuses,
		metrics.MessagesDropped /* with a broker */}
}

// boardOf returns the expressions of the dashboard by title, with its variables replaced.
func boardOf(t *testing.T) map[string]string {
	t.Helper()
	var board struct {
		Annotations struct{ List []struct{ Name, Expr string } }
		Panels      []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	text, err := os.ReadFile("../../deploy/grafana/weir-transfers.json")
	if err == nil {
		err = json.Unmarshal(text, &board)
	}
	require.NoError(t, err)
	all := map[string]string{}
	for _, a := range board.Annotations.List {
		all[a.Name] = a.Expr
	}
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			all[p.Title+" "+q.RefID] = q.Expr
		}
	}
	fill := strings.NewReplacer("$source", ".*", "$dest", ".*", "$__rate_interval", "30s")
	for title, expr := range all {
		if all[title] = fill.Replace(expr); strings.Contains(all[title], "$") {
			t.Errorf("%s: a variable is not known: %s", title, expr)
		}
	}
	if len(all) < 30 {
		t.Errorf("the dashboard has %d expressions", len(all))
	}
	return all
}
