package htcondor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"weir/loadtest/cluster/batch"
)

// describe writes the submit description
// (https://htcondor.readthedocs.io/en/latest/man-pages/condor_submit.html). The user's lines come
// before the lines that must not change: the last value of a command counts. If the machines have
// the program already, on a shared file system, it need not be transferred.
func describe(w *batch.Work, sub *batch.Submission) (string, error) {
	arguments, err := arguments(w.Args)
	if err != nil {
		return "", err
	}
	for _, path := range append([]string{w.Program, w.Dir}, w.Files...) {
		if strings.ContainsAny(path, ",\"\n\r") || strings.TrimSpace(path) != path {
			return "", fmt.Errorf("%q: HTCondor accepts no path with commas, quotes, or leading or trailing spaces", path)
		}
	}
	return fmt.Sprintf(`# Written by weir, and submitted with condor_submit.
universe = vanilla
batch_name = %s
notification = Never
want_graceful_removal = True
job_max_vacate_time = 10
executable = %s
transfer_executable = True
%s
arguments = %s
environment = "%sWEIR_WORKER=$(Process) WEIR_JOB=$(Cluster).$(Process)"
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
transfer_input_files = %s
transfer_output_files = ""
initialdir = %s/out/$(Process)
output = stdout
error = stderr
stream_output = False
stream_error = False
log = %s
log_xml = False
+%s = "%s"
queue %d
`, literal(batch.Words("weir "+w.Name, nil)), literal(w.Program), strings.Join(w.Options, "\n"), arguments, environment(w.Options),
		literal(strings.Join(w.Files, ",")),
		literal(w.Dir), literal(filepath.Join(w.Dir, "events.log")), tagAttribute, sub.Tag, w.Count), nil
}

// literal keeps HTCondor from taking a part of s for a macro.
func literal(s string) string { return strings.ReplaceAll(s, "$", "$(DOLLAR)") }

// arguments writes a command line in HTCondor's new syntax: the whole in double quotes, each
// argument in single quotes, and quotes inside doubled.
func arguments(args []string) (string, error) {
	words := make([]string, len(args))
	for i, a := range args {
		if strings.Contains(a, "$$(") || strings.Contains(a, "$$[") {
			return "", fmt.Errorf("%q: HTCondor would replace a part of this argument", a)
		}
		words[i] = "'" + strings.ReplaceAll(literal(a), "'", "''") + "'"
	}
	return `"` + strings.ReplaceAll(strings.Join(words, " "), `"`, `""`) + `"`, nil
}

// ours returns the commands that weir sets in a submit description.
func ours() []string {
	return []string{"arguments", "should_transfer_files", "when_to_transfer_output", "transfer_input_files", "transfer_output_files",
		"initialdir", "output", "error", "log", "log_xml"}
}

// checkOptions refuses lines that would submit jobs themselves, and lines that would have no
// effect.
func checkOptions(lines []string) error {
	for _, line := range lines {
		word, _, _ := strings.Cut(strings.TrimLeft(line, " \t"), " ")
		if strings.EqualFold(strings.TrimSpace(word), "queue") || strings.ContainsAny(line, "\n\r\x00") || strings.HasSuffix(line, `\`) {
			return fmt.Errorf("on.submit: %q: weir sets how many jobs are queued: write lines such as \"request_memory = 2GB\"", line)
		}
		name, value := command(line)
		if slices.Contains(ours(), name) {
			return fmt.Errorf("on.submit: %q: weir sets %s itself: leave it out", line, name)
		}
		if name == "environment" && (len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"') {
			return fmt.Errorf(`on.submit: %q: write it with double quotes around all, as in environment = "A=1 B=2"`, line)
		}
	}
	return nil
}

// command splits a line of a submit description; its names are not case-sensitive.
func command(line string) (name, value string) {
	name, value, _ = strings.Cut(line, "=")
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "env" {
		name = "environment"
	}
	return name, strings.TrimSpace(value)
}

// environment returns the environment in the user's lines, which is added to ours: the last line
// counts.
func environment(lines []string) (text string) {
	for _, line := range lines {
		if name, value := command(line); name == "environment" {
			text = value[1:len(value)-1] + " "
		}
	}
	return text
}
