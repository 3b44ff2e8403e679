package rigs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
)

// Rigs have unique names, a situation and a truth; at least 30 have one cause and ten have two.
func TestDiagnoseNames(t *testing.T) {
	causes := map[string]bool{}
	for _, c := range []string{"name lookup", "connect", "tls", "login", "redirector", "server disk", "server host", "server limit", "line",
		"this host", "checksum", "small files"} {
		causes[c] = true
	}
	seen, two := map[string]bool{}, 0
	for _, r := range diagnoseRigs() {
		if seen[r.name] || r.name == "" || r.situation == "" || r.play == nil {
			t.Errorf("%q: not complete, or twice", r.name)
		}
		seen[r.name] = true
		for one := range strings.SplitSeq(r.cause, "|") {
			if cause, _, _ := strings.Cut(one, "/"); !causes[cause] {
				t.Errorf("%s: no verdict can have the cause %q", r.name, cause)
			}
		}
		if r.second != "" {
			two++
		}
	}
	if one := len(seen) - two; one < 30 || two < 10 {
		t.Errorf("%d rigs with one cause and %d with two, at least 30 and 10 are wanted", one, two)
	}
}

// A verdict is right if its cause is, and the detail where the truth has one. "cannot tell" is
// neither right nor wrong, and a failure of weir is wrong.
func TestDiagnosesAreJudged(t *testing.T) {
	r := &diagnoseRig{name: "window-receiver", cause: "line/window|this host/buffer"}
	host := &diagnoseRig{name: "paused", cause: "server host"}
	for _, c := range []struct {
		rig    *diagnoseRig
		answer string
		want   score
	}{
		{r, `{"verdict": {"cause": "line", "detail": "window", "certainty": "certain"}}`, score{right: 1}},
		{r, `{"verdict": {"cause": "this host", "detail": "buffer", "certainty": "likely"}}`, score{right: 1}},
		{r, `{"verdict": {"cause": "line", "detail": "loss", "certainty": "likely"}}`, score{wrong: 1}},
		{r, `{"verdict": {"cause": "line", "detail": "loss", "certainty": "cannot tell"}}`, score{unknown: 1}},
		{r, `{"verdict": {"cause": ""}}`, score{unknown: 1}},
		{r, `{"error": "exit 1"}`, score{wrong: 1}},
		{host, `{"verdict": {"cause": "server host", "detail": "queue", "certainty": "likely"}}`, score{right: 1}},
	} {
		if got := c.rig.score(&diagnosed{Answers: []json.RawMessage{json.RawMessage(c.answer)}}); got != c.want {
			t.Errorf("%s, %s: %+v, want %+v", c.rig.cause, c.answer, got, c.want)
		}
	}
}

// The section of diagnoses has the matrix and a row for each rig, and takes the place of the last one.
func TestDiagnoseSection(t *testing.T) {
	answers := func(all ...string) (out []json.RawMessage) {
		for _, a := range all {
			out = append(out, json.RawMessage(`{"verdict": {"cause": "`+a+`", "certainty": "likely"}}`))
		}
		return out
	}
	section := renderDiagnoses(machine{}, []*diagnosed{
		{Rig: "login-queue", Checks: []string{"a|b"}, Answers: answers("login", "connect", "")},
		{Rig: "slow-dns", Answers: answers("name lookup")},
	})
	for _, want := range []string{"**2 of 4 diagnoses right, 1 cannot tell, 1 wrong.**",
		"| truth \\ weir | cannot tell | connect | login | name lookup |",
		"| login | 1 | 1 | 1 | |\n", "| name lookup | | | | 1 |\n", `a\|b`, "**1 wrong**"} {
		if !strings.Contains(section, want) {
			t.Errorf("without %q:\n%s", want, section)
		}
	}
	path := filepath.Join(t.TempDir(), "truth.md")
	const rest = "# What\n\n## Healthy runs\n\nb\n"
	require.NoError(t, os.WriteFile(path, []byte(rest), 0o600))
	for range 2 {
		require.NoError(t, writeDiagnoses(path, section))
	}
	text := string(require.File(t, path))
	if strings.Count(text, diagnoseHead) != 1 || withSections(rest, path) != text {
		t.Errorf("one section expected, which stays when the rest is written again:\n%s", text)
	}
}

// The situations of a few rigs exist: other tools see them.
func TestDiagnoseSituations(t *testing.T) {
	tier.Slow(t, "plays rigs for seconds")
	weir := builtWeir(t)
	for _, r := range diagnoseRigs() {
		if r.name != "mtu" && r.name != "slow-dns" {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			if why := lacks(append(r.needs, "root", "ping", "curl", "iptables", "ip")); why != "" {
				t.Skip(why)
			}
			d := diagnosed{}
			r.inChild(t, weir, "", filepath.Join(t.TempDir(), "result"), true, &d)
			if len(d.Checks) == 0 {
				t.Error("no observations of other tools")
			}
			r.log(t, &d)
		})
	}
}
