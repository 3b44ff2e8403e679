package slurm

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"weir/loadtest/cluster/batch"
	"weir/loadtest/cluster/batch/shell"
)

// mostInScript is the total size of the files that may be part of a batch script: Slurm accepts
// scripts of 4 MiB unless configured otherwise (SchedulerParameters=max_script_size).
const mostInScript = 2 << 20

// scripts are a batch script as it is submitted, and as it is kept: without the contents of its
// files.
type scripts struct{ sent, kept string }

// script writes the batch script of an array whose first task is the worker first.
func script(w *batch.Work, sub *batch.Submission, first int) (s scripts, err error) {
	var options, sent, kept strings.Builder
	for _, o := range w.Options {
		options.WriteString("#SBATCH " + o + "\n")
	}
	total := 0
	for _, f := range w.Files {
		text, err := os.ReadFile(f)
		if err != nil {
			return s, err
		}
		if total += len(text); total > mostInScript {
			return s, fmt.Errorf("%s: files of more than %d MiB cannot travel with a job of Slurm", f, mostInScript>>20)
		}
		into := "base64 -d >" + batch.Quote(filepath.Base(f)) + " <<'END'"
		sent.WriteString(into + "\n" + lines(base64.StdEncoding.EncodeToString(text)) + "END\n")
		kept.WriteString(into + "\n(it was here)\nEND\n")
	}
	return scripts{sent: body(w, sub, first, options.String(), sent.String()), kept: body(w, sub, first, options.String(), kept.String())}, nil
}

// body writes a batch script with these lines of options, and files.
func body(w *batch.Work, sub *batch.Submission, first int, options, files string) string {
	words := make([]string, len(w.Args))
	for i, a := range w.Args {
		words[i] = batch.Quote(a)
	}
	return "#!/bin/sh\n" + options + `# Written by weir, and submitted with sbatch --array.
mask=$(umask)
umask 077
n=$((SLURM_ARRAY_TASK_ID + ` + strconv.Itoa(first) + `))
share=` + batch.Quote(w.Dir) + `
program=` + batch.Quote(shared(sub)) + `
if [ ! -x "$program" ]; then # this node does not see the folder: all is brought to it
` + shell.Await(sub.Tag, "${n}") + `	exit 0
fi
WEIR_WORKER=$n WEIR_JOB=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
export WEIR_WORKER WEIR_JOB
d=
for t in "${TMPDIR:-/tmp}" /tmp; do
	[ -n "$d" ] || d=$(mktemp -d "$t/` + sub.Tag + `.XXXXXXXX" 2>/dev/null)
done
cd "$d" || exit 125
leave() {
	cd "$d" 2>/dev/null || return
	for f in stdout stderr; do
		[ ! -f "$f" ] || cp -f "$f" "$share/out/$n/$f"
	done
	cd / && rm -rf "$d"
}
: >"$share/out/$n/.runs"
` + files + `umask "$mask"
"$program" ` + strings.Join(words, " ") + ` >stdout 2>stderr </dev/null &
p=$!
told=
trap 'told=1; kill -TERM "$p" 2>/dev/null' TERM INT HUP
wait "$p"
c=$?
if [ -n "$told" ]; then # the wait ended with the signal, not with the worker; Slurm kills this script soon
	(
		sleep 1
		leave
		sleep 9
		kill -KILL "$p"
	) >/dev/null 2>&1 &
	k=$!
	wait "$p"
	c=$?
	kill "$k" 2>/dev/null
fi
leave
echo "$c" >"$share/out/$n/.exit"
exit "$c"
`
}

// lines breaks s into lines that every program can read.
func lines(s string) string {
	var b strings.Builder
	for len(s) > 76 {
		b.WriteString(s[:76] + "\n")
		s = s[76:]
	}
	return b.String() + s + "\n"
}
