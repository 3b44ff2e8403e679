package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
)

// completed returns the words that weir offers after args, without their descriptions.
func completed(t *testing.T, dir string, args ...string) []string {
	t.Helper()
	code, said := start(t, dir, "weir", append([]string{"__complete"}, args...)...).ended()
	if code != exitFine {
		t.Fatalf("exit code %d: %s", code, said)
	}
	var offers []string
	for l := range strings.Lines(said) {
		if strings.HasPrefix(l, ":") {
			break
		}
		word, _, _ := strings.Cut(strings.TrimSpace(l), "\t")
		offers = append(offers, word)
	}
	return offers
}

// runsToComplete makes folders, some of which are runs.
func runsToComplete(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"runs/a/about.json": "{}", "runs/b/about.json": "{}", "runs/camp/campaign.json": "{}", "runs/notes/text": "",
		"old/x/about.json": "{}", "src/main.go": "", "s.yaml": "target: built-in\nvariables: {SIZE: 1MiB, HOST: null}\n", "broken.yaml": "{",
	} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return dir
}

func TestComplete(t *testing.T) {
	t.Parallel()
	dir := runsToComplete(t)
	for _, c := range []struct {
		args string
		want []string
	}{
		{"report ", []string{"runs/a", "runs/b", "runs/camp", "old/", "runs/"}},
		{"report runs/", []string{"runs/a", "runs/b", "runs/camp"}},
		{"report runs/a ", nil},
		{"compare runs/a runs/", []string{"runs/b", "runs/camp"}},
		{"run --resume runs/c", []string{"runs/camp"}},
		{"clean " + dir + "/old/", []string{dir + "/old/x"}},
		{"clean ./o", []string{"./old/"}},
		{"run s.yaml --var ", []string{"HOST=", "SIZE="}},
		{"run s.yaml broken.yaml missing.yaml --var ", []string{"HOST=", "SIZE="}},
		{"run --set load.du", []string{"load.duration="}},
		{"run --set workload.kind=", []string{"workload.kind=command-job", "workload.kind=copy", "workload.kind=job",
			"workload.kind=login", "workload.kind=metadata",
			"workload.kind=mix", "workload.kind=read", "workload.kind=write"}},
		{"run --set workload.sync=", []string{"workload.sync=false", "workload.sync=true"}},
		{"run --set nothing=", nil},
		{"run --duration ", nil},
		{"run ", []string{"yaml", "yml"}}, // endings of files
		{"calibrate --client ", []string{"xrdcp", "curl", "gfal-copy"}},
		{"calibrate --kind ", []string{"read", "write"}},
		{"compare --metric p50,p9", []string{"p50,p99"}},
		{"lab up ", []string{"artemis", "gridftp", "htcondor", "keycloak", "kubernetes", "nginx", "postgresql", "rabbitmq", "rucio", "slurm",
			"ssh", "xrootd"}},
		{"lab up xrootd --auth k", []string{"krb5"}},
		{"report --format svg,p", []string{"svg,png", "svg,pdf"}},
		{"export runs/c", []string{"runs/camp"}},
		{"calibrate --size ", nil},
		{"doctor ", nil},
	} {
		got := completed(t, dir, strings.Split(c.args, " ")...)
		last := c.args[strings.LastIndexByte(c.args, ' ')+1:]
		got = slices.DeleteFunc(got, func(s string) bool { return !strings.HasPrefix(s, last) }) // as shells do
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.args, got, c.want)
		}
	}
}

// Completion works in Bash with the script that weir writes.
func TestCompleteInBash(t *testing.T) {
	t.Parallel()
	const loader = "/usr/share/bash-completion/bash_completion"
	if _, err := os.Stat(loader); err != nil {
		if os.Getenv("WEIR_REQUIRE") == "all" {
			t.Fatal(err)
		}
		t.Skip("the package bash-completion is not installed: ", err)
	}
	dir := runsToComplete(t)
	const script = `source ` + loader + `
source <(weir completion bash)
comp() { # splits at = and :, as readline does
	COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMP_TYPE=9 COMP_WORDS=() COMPREPLY=()
	COMP_POINT=${#COMP_LINE}
	for w in $COMP_LINE; do
		while [[ $w =~ ^([^=:]*)([=:]+)(.*)$ ]]; do
			[[ ${BASH_REMATCH[1]} ]] && COMP_WORDS+=("${BASH_REMATCH[1]}")
			COMP_WORDS+=("${BASH_REMATCH[2]}"); w=${BASH_REMATCH[3]}
		done
		[[ $w ]] && COMP_WORDS+=("$w")
	done
	[[ $COMP_LINE == *' ' ]] && COMP_WORDS+=('')
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	__start_weir 2>/dev/null
	echo "$COMP_LINE -> ${COMPREPLY[*]}"
}
comp "weir ca"
comp "weir report runs/"
comp "weir run --set load.du"
comp "weir run --set workload.kind=me"
comp "weir run --target dav"
`
	cmd := exec.CommandContext(t.Context(), "bash", "--norc", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err, string(out))
	}
	for _, want := range []string{
		"weir ca -> calibrate", "weir report runs/ -> runs/a runs/b runs/camp", "weir run --set load.du -> load.duration=",
		"weir run --set workload.kind=me -> metadata", "weir run --target dav -> dav:// davs://",
	} {
		if !strings.Contains(string(out), want+"\n") {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}
