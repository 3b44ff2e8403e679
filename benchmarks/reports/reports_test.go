package reports

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/internal/require"
)

var (
	bold = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	link = regexp.MustCompile(`\]\(#([0-9]{3}-[a-z0-9-]+)\)`)
)

// TestPages compares the tables of the pages with the measurements: each figure in bold, in a row
// that links to runs, is in the output of one of these runs. Each figure that is drawn is shown.
func TestPages(t *testing.T) {
	pages, err := readPages(root)
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, p := range pages {
		outputs := map[string]string{}
		for _, r := range p.runs {
			if outputs[r.name] != "" {
				t.Errorf("%s:%d: %s stands twice", p.path, r.line, r.name)
			}
			outputs[r.name] = p.output(r)
			if !strings.Contains(outputs[r.name], "\nmeasured  ") {
				t.Errorf("%s:%d: %s was not measured: make reports", p.path, r.line, r.name)
			}
			for _, f := range r.figures {
				shown[r.name+"-"+f+".svg"] = true
			}
		}
		for i, line := range p.lines {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			said := ""
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if outputs[m[1]] == "" {
					t.Errorf("%s:%d: there is no run %s", p.path, i+1, m[1])
				}
				said += outputs[m[1]]
			}
			for _, m := range bold.FindAllStringSubmatch(line, -1) {
				whole := regexp.MustCompile(`(^|[^0-9.])` + regexp.QuoteMeta(m[1]) + `($|[^0-9])`)
				if said != "" && !whole.MatchString(said) {
					t.Errorf("%s:%d: no run of this row printed %q", p.path, i+1, m[1])
				}
			}
		}
	}
	there, err := os.ReadDir(filepath.Join(root, "docs/reports/figures"))
	require.NoError(t, err)
	for _, f := range there {
		if !shown[f.Name()] {
			t.Errorf("no page shows figures/%s", f.Name())
		}
	}
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
