package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
)

// keptLab is a `weir lab up` that runs until it gets a signal.
type keptLab struct {
	out     *io.PipeReader
	said    bytes.Buffer // its standard error, complete once it has ended
	signals chan os.Signal
	code    chan exitCode
}

func keepLab(t *testing.T, args ...string) *keptLab {
	t.Helper()
	r, w := io.Pipe()
	k := &keptLab{out: r, signals: make(chan os.Signal, 4), code: make(chan exitCode, 1)}
	go func() {
		k.code <- execute(t.Context(), append([]string{"lab", "up"}, args...), streams{in: strings.NewReader(""), out: w, err: &k.said},
			func() <-chan os.Signal { return k.signals })
		_ = w.Close()
	}()
	return k
}

// end sends a signal and waits for the exit code.
func (k *keptLab) end(t *testing.T, sig os.Signal) exitCode {
	t.Helper()
	k.signals <- sig
	select {
	case code := <-k.code:
		return code
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
		return -1
	}
}

func TestLabUpForPrograms(t *testing.T) {
	labtest.Need(t, "nginx")
	k := keepLab(t, "nginx", "--tls", "--json")
	var state lab.State
	if err := json.NewDecoder(k.out).Decode(&state); err != nil {
		t.Fatal(err, k.said.String())
	}
	require.NoError(t, os.WriteFile(filepath.Join(state.Data, "f"), []byte("hello"), 0o644))
	if got := labtest.Get(t, state.URL+"/f"); got != "hello" {
		t.Errorf("it serves %q", got)
	}
	if len(state.Pids) != 1 || !strings.HasPrefix(state.URLs["https"], "https://localhost:") || state.CAFile == "" {
		t.Errorf("it says %+v", state)
	}
	if code := k.end(t, os.Interrupt); code != exitFine {
		t.Errorf("exit code %d: %s", code, k.said.String())
	}
	vanished(t, state.Dir, state.Pids)
	for _, want := range []string{"starting nginx", "nginx is up", "ready after", "Ctrl-C", "stopping"} {
		if !strings.Contains(k.said.String(), want) {
			t.Errorf("progress lacks %q: %s", want, k.said.String())
		}
	}
}

// vanished checks that neither a folder nor processes are left.
func vanished(t *testing.T, dir string, pids []int) {
	t.Helper()
	if _, err := os.Stat(dir); dir == "" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder %q is left: %v", dir, err)
	}
	if len(pids) == 0 {
		t.Error("there were no processes")
	}
	for _, pid := range pids {
		if err := syscall.Kill(-pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process group %d is left: %v", pid, err)
		}
	}
}

// The output for people contains the settings for a scenario and the settings that clients need.
func TestLabUpForPeople(t *testing.T) {
	labtest.Need(t, "xrootd", "krb5kdc", "kadmin.local", "kinit", "xrdcp")
	dir := t.TempDir() + "/lab"
	for up := filepath.Dir(dir); up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
		require.NoError(t, os.Chmod(up, 0o755))
	}
	k := keepLab(t, "xrootd", "--servers", "2", "--auth", "krb5", "--lookup", "1s", "--dir", dir)
	said := make([]byte, 1<<16)
	n, err := k.out.Read(said) // it writes once
	if err != nil {
		t.Fatal(err, k.said.String())
	}
	text := string(said[:n])
	var pids []int
	for _, m := range regexp.MustCompile(`(?m)^(?:redirector|ds[12]) +127\.0\.0\.1:\d+ +pids (\d+) (\d+)$`).FindAllStringSubmatch(text, -1) {
		for _, number := range m[1:] {
			pid, err := strconv.Atoi(number)
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	if len(pids) != 6 {
		t.Errorf("processes %v of one redirector and two data servers in\n%s", pids, text)
	}
	_, block, found := strings.Cut(text, "# for a scenario\n")
	if !found {
		t.Fatalf("no scenario in\n%s", text)
	}
	scenario := filepath.Join(t.TempDir(), "s.yaml")
	require.NoError(t, os.WriteFile(scenario, []byte(block), 0o600))
	if code, said := weir(t, "plan", scenario); code != exitFine || !strings.Contains(said, "krb5 ada") {
		t.Errorf("weir plan: exit code %d\n%s", code, said)
	}
	exports := regexp.MustCompile(`(?m)^export .*$`).FindAllString(text, -1)
	target := regexp.MustCompile(`(?m)^target: (.*)$`).FindStringSubmatch(text)[1]
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", strings.Join(exports, "\n")+"\nxrdcp -s /etc/hostname "+target+"/f")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("xrdcp with %q: %v\n%s", exports, err, out)
	}
	if code := k.end(t, syscall.SIGTERM); code != exitFine {
		t.Errorf("exit code %d: %s", code, k.said.String())
	}
	vanished(t, dir, pids)
}

// A lab ends with its terminal, and leaves no files or processes.
func TestLabUpHangsUp(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("this process was started so that hangups are ignored (nohup): its children ignore them, too")
	}
	labtest.Need(t, "nginx")
	k := keepLab(t, "nginx", "--json")
	var state lab.State
	if err := json.NewDecoder(k.out).Decode(&state); err != nil {
		t.Fatal(err, k.said.String())
	}
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	select {
	case code := <-k.code:
		if code != exitFine {
			t.Errorf("exit code %d: %s", code, k.said.String())
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
	}
	vanished(t, state.Dir, state.Pids)
}

// A command runs in the lab's environment, and weir ends with its exit code.
func TestLabUpRunsACommand(t *testing.T) {
	labtest.Need(t, "nginx", "curl")
	const use = `curl -sSf -T /etc/hostname "$WEIR_LAB_URL/f" && curl -sSf --cacert "$WEIR_LAB_CA" "$WEIR_LAB_URL_HTTPS/f" >/dev/null &&
		cmp /etc/hostname "$WEIR_LAB_DATA/f" && echo "pid $PPID folder $WEIR_LAB_DATA"; `
	for end, want := range map[string]exitCode{"exit 0": 0, "exit 7": 7, "kill -KILL $$": 137} {
		code, said := weir(t, "lab", "up", "nginx", "--tls", "--", "sh", "-c", use+end)
		m := regexp.MustCompile(`folder (\S+)/root/data`).FindStringSubmatch(said)
		if code != want || m == nil {
			t.Fatalf("%s: exit code %d, want %d\n%s", end, code, want, said)
		}
		if _, err := os.Stat(m[1]); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: folder %s is left: %v", end, m[1], err)
		}
	}
	if code, said := weir(t, "lab", "up", "nginx", "--", "/nowhere/to/be/found"); code != exitError ||
		!strings.Contains(said, "/nowhere/to/be/found") {
		t.Errorf("a command that is not there: exit code %d\n%s", code, said)
	}
}

// A signal reaches the command, and the end of the command ends the lab.
func TestLabUpPassesSignalsOn(t *testing.T) {
	labtest.Need(t, "nginx")
	k := keepLab(t, "nginx", "--", "sh", "-c", `trap 'echo "told $WEIR_LAB_DATA"; exit 5' TERM; echo waiting; while :; do sleep 0.05; done`)
	line := make([]byte, 1<<10)
	if n, err := k.out.Read(line); err != nil || string(line[:n]) != "waiting\n" {
		t.Fatalf("%q, %v", line[:n], err)
	}
	k.signals <- syscall.SIGTERM
	n, err := k.out.Read(line)
	if err != nil || !strings.HasPrefix(string(line[:n]), "told ") {
		t.Fatalf("%q, %v", line[:n], err)
	}
	if code := <-k.code; code != 5 {
		t.Errorf("exit code %d, want the command's\n%s", code, k.said.String())
	}
	if _, err := os.Stat(filepath.Dir(strings.TrimSpace(string(line[5:n])))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is left: %v", err)
	}
}

// weir accepts the settings that a lab prints for a scenario with servers behind a balancer.
func TestLabUpBalanced(t *testing.T) {
	labtest.Need(t, "globus-gridftp-server", "haproxy")
	k := keepLab(t, "gridftp", "--servers", "2")
	said := make([]byte, 1<<16)
	n, err := k.out.Read(said) // it writes once
	if err != nil {
		t.Fatal(err, k.said.String())
	}
	_, block, _ := strings.Cut(string(said[:n]), "# for a scenario\n")
	scenario := filepath.Join(t.TempDir(), "s.yaml")
	require.NoError(t, os.WriteFile(scenario, []byte(block), 0o600))
	if code, told := weir(t, "plan", scenario); code != exitFine || !strings.Contains(told, "HAProxy, from ") ||
		!strings.Contains(told, "gftp-2 (server)") {
		t.Errorf("weir plan: exit code %d\n%s\nof\n%s", code, told, block)
	}
	if code := k.end(t, os.Interrupt); code != exitFine {
		t.Errorf("exit code %d: %s", code, k.said.String())
	}
	code, told := weir(t, "lab", "up", "gridftp", "--servers", "2", "--quiet", "--", "sh", "-c",
		`printf '{"target": "%s", "balancer": %s, "hosts": %s}\n' "$WEIR_LAB_URL" "$WEIR_LAB_BALANCER" "$WEIR_LAB_HOSTS"`)
	require.NoError(t, os.WriteFile(scenario, []byte(told), 0o600))
	if again, told := weir(t, "plan", scenario); code != exitFine || again != exitFine || !strings.Contains(told, "gftp-2 (server)") {
		t.Errorf("weir plan of the environment: exit codes %d and %d\n%s", code, again, told)
	}
}

// The commands of docs/lab.md print the output in the page: they find the programs of batch
// systems, and the settings of a scenario for these systems.
func TestLabPage(t *testing.T) {
	tier.Full(t, "the page, line by line")
	labtest.Need(t, "condor_master", "slurmctld", "munged", "sinfo", "sshd", "ssh", "globus-gridftp-server", "haproxy", "namespaces",
		"postgres",
		"initdb", "pg_isready", "etcd", "containerd", "catatonit", "kube-apiserver", "kubelet", "root")
	page := require.File(t, "../../docs/lab.md")
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for _, call := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			command, want, _ := strings.Cut(call, "\n")
			cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
			cmd.Dir = t.TempDir()
			var said bytes.Buffer
			cmd.Stderr = &said
			out, err := cmd.Output()
			if got := strings.TrimSpace(string(out)); err != nil || got != strings.TrimSpace(want) {
				t.Errorf("%s: %v, and it prints\n%s\nwant\n%s\n%s", command, err, got, want, said.String())
			}
			ran++
		}
	}
	if ran < 6 {
		t.Errorf("only %d commands found in docs/lab.md", ran)
	}
}

// An interrupt before the service is up leaves no files or processes either.
func TestLabUpInterruptedEarly(t *testing.T) {
	labtest.Need(t, "xrootd", "cmsd")
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("weir-lab-early-%d", os.Getpid()))
	k := keepLab(t, "xrootd", "--servers", "3", "--dir", dir)
	if code := k.end(t, os.Interrupt); code != exitInterrupt || !strings.Contains(k.said.String(), "interrupted before it was up") {
		t.Errorf("exit code %d\n%s", code, k.said.String())
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder %s is left: %v", dir, err)
	}
}
