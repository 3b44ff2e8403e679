package shell

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"weir/internal/tarfile"
	"weir/loadtest/cluster/batch"
)

// All login shells, csh and fish among them, read the command lines below in the same way: each is
// one line, with a script in single quotes that contains no single quotes, backslashes or
// exclamation marks.

// unpackLine makes the private folder, unpacks the archive into it and prints its path.
func unpackLine(_, tag string) string {
	return `exec /bin/sh -c 'umask 077; d=$(mktemp -d "${TMPDIR:-/tmp}/` + tag +
		`.XXXXXXXX") && cd "$d" && { tar -xf - || { cd /; rm -rf "$d"; exit 1; }; } && pwd -P'`
}

// runLine runs a worker in the folder dir.
func runLine(dir string, worker int, id string) string {
	return fmt.Sprintf("exec /bin/sh %s/.run %d %s", dir, worker, id)
}

// bringLine sends the outputs of the workers in dir, then removes it.
func bringLine(dir string) string { return "exec /bin/sh " + dir + "/.bring" }

// sweepLine ends the running processes of a submission and removes its folders, whose names have
// its unique tag.
func sweepLine(tag string) string {
	return `exec /bin/sh -c 'd=${TMPDIR:-/tmp}; for p in "$d"/` + tag + `.*/*/.pid; do [ -e "$p" ] || continue; q=$(cat "$p"); ` +
		`case $(ps -p "$q" -o args= 2>/dev/null || cat "/proc/$q/cmdline" 2>/dev/null) in *` + tag +
		`*) kill -KILL "$q" "-$q" 2>/dev/null;; esac; done; rm -rf "$d"/` + tag + `.*'`
}

// runScript returns the script that runs one worker on a machine. Its standard input is the
// connection to the process that has started it. A word from there ends the worker, and so does the
// end of the input. In the latter case the outputs are not fetched any more, and the script removes
// the folder itself.
func runScript(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = batch.Quote(a)
	}
	return `# runs one worker of weir: NUMBER NAME
d=${0%/*}
WEIR_WORKER=$1 WEIR_JOB=$2
export WEIR_WORKER WEIR_JOB
mkdir "$d/$1" && cd "$d/$1" || exit 125
for f in "$d"/files/*; do
	[ ! -e "$f" ] || ln -s "$f" .
done
exec 3<&0 </dev/null
apart=$(command -v setsid) # a process group of its own, with all that the worker starts
$apart "$d/weir" ` + strings.Join(words, " ") + ` >stdout 2>stderr 3<&- &
p=$!
echo "$p" >.pid
g=$p
[ -z "$apart" ] || g=-$p
(
	exec >/dev/null 2>&1
	said=
	read -r said <&3
	[ -n "$said" ] || : >.lost
	kill -TERM "$g" || kill -TERM "$p"
	i=0
	while [ "$i" -lt 100 ] && kill -0 "$p"; do
		sleep 0.1 || sleep 1
		i=$((i + 1))
	done
	kill -KILL "$g" || kill -KILL "$p"
) &
k=$!
trap '' PIPE # who has started this may be gone
echo "runs on $(uname -n)"
wait "$p"
c=$?
kill "$k" 2>/dev/null
[ "$g" = "$p" ] || kill -KILL "$g" 2>/dev/null
rm -f .pid
[ "$c" = 0 ] || tail -n 3 stderr
if [ -e .lost ]; then
	cd / && rm -rf "$d/$1"
	set -- "$d"/[0-9]*
	[ -e "$1" ] || rm -rf "$d"
fi
exit "$c"
`
}

// bringScript sends the outputs of all workers of a machine as an archive, then removes the folder.
func bringScript(names []string) string {
	return `# sends what the workers of weir have left, then clears it away
d=${0%/*}
cd "$d" || exit 1
set --
for n in [0-9]*; do
	for f in ` + strings.Join(names, " ") + `; do
		[ ! -f "$n/$f" ] || set -- "$@" "$n/$f"
	done
done
[ $# = 0 ] || tar -cf - "$@"
c=$?
cd / && rm -rf "$d"
exit $c
`
}

// outputs returns the names of the files that are fetched from each worker.
func outputs() []string { return []string{"stdout", "stderr"} }

// pack writes the program, the files and the scripts for a machine as an archive.
func pack(out io.Writer, w *batch.Work) error {
	t := tar.NewWriter(out)
	if err := tarfile.AddFile(t, w.Program, tar.Header{Name: "weir", Mode: 0o700}); err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "files/", Mode: 0o700}); err != nil {
		return err
	}
	for _, f := range w.Files {
		if err := tarfile.AddFile(t, f, tar.Header{Name: "files/" + filepath.Base(f), Mode: 0o600}); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{".run": runScript(w.Args), ".bring": bringScript(outputs())} {
		if err := tarfile.AddText(t, name, []byte(text)); err != nil {
			return err
		}
	}
	return t.Close()
}

// unpack extracts the outputs of workers from an archive into their folders, and nothing else:
// names from another machine are not trusted.
func unpack(in io.Reader, sub *batch.Submission, workers []int) error {
	names := outputs()
	for t := tar.NewReader(in); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		dir, name := path.Split(path.Clean(h.Name))
		n, err := strconv.Atoi(path.Clean(dir))
		if err != nil || h.Typeflag != tar.TypeReg || !slices.Contains(workers, n) || !slices.Contains(names, name) {
			return fmt.Errorf("unexpected %q among the outputs", h.Name)
		}
		if err := keep(t, sub.Out(n), name); err != nil {
			return err
		}
	}
}

func keep(in io.Reader, dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}
