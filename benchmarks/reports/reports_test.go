package reports

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
)

var (
	bold = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	link = regexp.MustCompile(`\]\((?:docs/reports/)?[0-9]{3}-runs\.md#([0-9]{3}-[a-z0-9-]+)\)`)
)

// mostLines is the length of a report's page. Runs have a file of their own.
const mostLines = 250

// TestPages compares the tables of the reports with the measurements: each figure in bold, in a row
// that links to runs, is in the output of one of these runs, and the row has the worst verdict of
// its runs. Each figure that is drawn is shown.
func TestPages(t *testing.T) {
	pages, err := readPages(root)
	require.NoError(t, err)
	shown := map[string]bool{}
	outputs, states := map[string]string{}, map[string]string{}
	for _, p := range pages {
		for _, r := range p.runs {
			if outputs[r.name] != "" {
				t.Errorf("%s:%d: %s stands twice", p.path, r.line, r.name)
			}
			outputs[r.name], states[r.name] = p.output(r), p.verdict(r)
			if !strings.Contains(outputs[r.name], "\nmeasured  ") {
				t.Errorf("%s:%d: %s was not measured: make reports", p.path, r.line, r.name)
			}
			for _, f := range r.figures {
				shown[r.name+"-"+f+".svg"] = true
			}
		}
	}
	tables := 0
	for _, p := range pages {
		lines, err := p.reportLines()
		require.NoError(t, err)
		if len(lines) > mostLines {
			t.Errorf("%s has %d lines, at most %d are read", p.report, len(lines), mostLines)
		}
		tables += checkTables(t, p.report, lines, outputs, states)
	}
	readme := strings.Split(string(require.File(t, filepath.Join(root, "README.md"))), "\n")
	if checkTables(t, "README.md", readme, outputs, states) != 1 || tables < len(pages) {
		t.Errorf("README.md, or a page, has no table with verdicts")
	}
	there, err := os.ReadDir(filepath.Join(root, "docs/reports/figures"))
	require.NoError(t, err)
	for _, f := range there {
		if !shown[f.Name()] {
			t.Errorf("no page shows figures/%s", f.Name())
		}
	}
}

// checkTables checks the rows of the tables of a file that have a column verdict, and returns their
// number. A row that links to a run belongs to such a table.
func checkTables(t *testing.T, path string, lines []string, outputs, states map[string]string) (tables int) {
	t.Helper()
	column := -1
	for i, line := range lines {
		if !strings.HasPrefix(line, "|") {
			column = -1
			continue
		}
		cells := strings.Split(line, "|")
		for k := range cells {
			if cells[k] = strings.TrimSpace(cells[k]); cells[k] == "verdict" {
				column = k
				tables++
			}
		}
		said, worst := "", -1
		for _, m := range link.FindAllStringSubmatch(line, -1) {
			if outputs[m[1]] == "" {
				t.Errorf("%s:%d: there is no run %s", path, i+1, m[1])
			}
			said += outputs[m[1]]
			worst = max(worst, slices.Index(verdicts(), states[m[1]]))
		}
		switch {
		case worst < 0:
		case column < 0 || column >= len(cells):
			t.Errorf("%s:%d: the row of a run has no verdict", path, i+1)
		case cells[column] != verdicts()[worst]:
			t.Errorf("%s:%d: the verdict is %q, the runs have %q", path, i+1, cells[column], verdicts()[worst])
		}
		for _, m := range bold.FindAllStringSubmatch(line, -1) {
			whole := regexp.MustCompile(`(^|[^0-9.])` + regexp.QuoteMeta(m[1]) + `($|[^0-9])`)
			if said != "" && !whole.MatchString(said) {
				t.Errorf("%s:%d: no run of this row printed %q", path, i+1, m[1])
			}
		}
	}
	return tables
}

// TestCommands plans each command of the pages: the scenario and its flags are still valid.
func TestCommands(t *testing.T) {
	pages, err := readPages(root)
	require.NoError(t, err)
	weir := build(t)
	for _, p := range pages {
		for _, r := range p.runs {
			t.Run(r.name, func(t *testing.T) {
				command, ok := planned(r.command)
				if !ok {
					t.Skip("not a weir run")
				}
				c := exec.CommandContext(t.Context(), "sh", "-c", command)
				c.Dir = root
				c.Env = append(os.Environ(), "PATH="+filepath.Dir(weir)+":"+os.Getenv("PATH"), "WEIR_LAB_URL=root://127.0.0.1:1094//data",
					"WEIR_LAB_URL_HTTP=http://127.0.0.1:1094/data", "WEIR_LAB_ON={batch: ssh, hosts: [node1]}",
					"WEIR_LAB_HOSTS=[]", "WEIR_LAB_BALANCER={haproxy: /run/haproxy/stats}",
					"WEIR_LAB_SERVERS=[root://127.0.0.1:1094//data]", "WEIR_LAB_AUTH={}")
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("%s: %v: %s", command, err, out)
				}
			})
		}
	}
}

// planned returns the command that plans a run: weir plan with the arguments of weir run, without a
// lab and without commands that follow.
func planned(command string) (string, bool) {
	i := strings.LastIndex(command, "weir run ")
	if i < 0 {
		return "", false
	}
	command, _, _ = strings.Cut(command, "\nkill ")
	plan := outDir.ReplaceAllString("weir plan "+command[i+len("weir run "):], "")
	if strings.Count(command[:i], "'")%2 == 1 { // within the quotes of sh -c
		plan = strings.TrimSuffix(strings.TrimSpace(plan), "'")
	}
	return plan, true
}
