package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
)

// A newcomer is a user with an empty home directory who follows a page.
type newcomer struct {
	t    *testing.T
	dir  string
	env  []string
	here []string // texts of the page and their replacements here
}

func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	dir := t.TempDir()
	env := []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}
	for _, name := range []string{"COVERDIR", "GOCOVERDIR"} {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return &newcomer{t: t, dir: dir, env: env}
}

func (n *newcomer) means(written, here string) { n.here = append(n.here, written, here) }

func (n *newcomer) write(name, text string) {
	n.t.Helper()
	path := filepath.Join(n.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// stays starts a command that keeps running, and returns it with the first line of its output.
func (n *newcomer) stays(command string) (cmd *exec.Cmd, said string) {
	n.t.Helper()
	cmd = exec.CommandContext(context.WithoutCancel(n.t.Context()), "weir", append(strings.Fields(command)[1:], "--while-stdin")...)
	var out locked
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = n.dir, n.env, &out, &out
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = in.Close()
		if strings.Contains(out.String(), "#code=") {
			n.t.Errorf("%s: who reads the log can sign in: %s", command, out.String())
		}
		if err := cmd.Wait(); err != nil || n.t.Failed() {
			n.t.Logf("%s: %v\n%s", command, err, out.String())
		}
	})
	require.Eventually(n.t, "a line of output", func() bool { return strings.Contains(out.String(), "\n") })
	said, _, _ = strings.Cut(out.String(), "\n")
	return cmd, said
}

// does runs a line of the page, and returns the first line of output if the command keeps running.
func (n *newcomer) does(line string) string {
	n.t.Helper()
	line = strings.NewReplacer(n.here...).Replace(strings.TrimSpace(line))
	if vars, ok := strings.CutPrefix(line, "export "); ok {
		n.env = append(n.env, strings.Fields(vars)...)
		return ""
	}
	if w := strings.Fields(line); w[0] == "weir" && (w[1] == "agent" || w[1] == "coordinator" &&
		(len(w) == 2 || strings.HasPrefix(w[2], "-"))) {
		_, said := n.stays(line)
		return said
	}
	cmd := exec.CommandContext(n.t.Context(), "sh", "-c", line)
	cmd.Dir, cmd.Env = n.dir, n.env
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Errorf("%s: %v\n%s", line, err, out)
	}
	return ""
}

// site waits until the coordinator has a site.
func (n *newcomer) site(name string) {
	n.t.Helper()
	require.Eventually(n.t, "the site is up", func() bool {
		cmd := exec.CommandContext(n.t.Context(), "weir", "site", "show", name)
		cmd.Dir, cmd.Env = n.dir, n.env
		out, err := cmd.CombinedOutput()
		return err == nil && strings.Contains(string(out), " up ")
	})
}

// commands returns the lines of a section's blocks for a shell.
func commands(text string) (all []string) {
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		all = append(all, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	return all
}

// Every command of docs/transfer.md works as written, in the order of the page, except for ports
// and the names of machines. The commands about databases have a test of their own.
func TestTransferPage(t *testing.T) {
	tier.Full(t, "the page, line by line")
	t.Parallel()
	labtest.Need(t, "curl")
	n := newNewcomer(t)
	for _, f := range []string{"a/store/run1/day1/f2", "a/incoming/run2/f1", "s/store/run3/f1", "s/store/run5/f1"} {
		n.write(f, f)
	}
	n.write("s/old/place/f1.root", strings.Repeat("x", 1<<20))
	n.write("s.token", "a-token-of-the-site\n")
	table := regexp.MustCompile("(?s)```csv\n(.*?)```").FindStringSubmatch(section(t, "transfer.md", "## Datasets"))
	if table == nil {
		t.Fatal("the page has no table of files")
	}
	n.write("files.csv", table[1])

	url := ""
	for _, line := range commands(section(t, "transfer.md", "## On one machine")) {
		if line == "weir coordinator" {
			line += " --listen 127.0.0.1:0"
		}
		said := n.does(line)
		if where, ok := strings.CutPrefix(said, "coordinator at "); ok {
			url, _, _ = strings.Cut(where, "#")
		}
		if site, ok := strings.CutPrefix(said, "site "); ok {
			n.site(site[:1])
		}
	}
	if text, err := os.ReadFile(filepath.Join(n.dir, "b/store/run1/day1/f2")); err != nil || string(text) != "a/store/run1/day1/f2" {
		t.Errorf("%q, %v", text, err)
	}
	n.rest(url)
}

// The chapter on many machines works, with this machine in all roles.
func TestTransferPageManyMachines(t *testing.T) {
	tier.Full(t, "the page, line by line")
	t.Parallel()
	n := newNewcomer(t)
	for _, dir := range []string{"b", "c"} {
		require.NoError(t, os.Mkdir(filepath.Join(n.dir, dir), 0o750))
	}
	n.means("--listen :9443 --url https://weir.example.org:9443", "--listen 127.0.0.1:0")
	n.means("--listen :9444 --url https://b.example.org:9444", "--listen 127.0.0.1:0")
	n.means("/data/", n.dir+"/")
	page := section(t, "transfer.md", "## On many machines")
	page, _, _ = strings.Cut(page, "\n### ")
	for _, line := range commands(page) {
		said := n.does(line)
		if where, ok := strings.CutPrefix(said, "coordinator at "); ok {
			n.means("https://weir.example.org:9443#PIN", where)
		}
	}
	n.site("B")
	n.site("C")
}

// rest follows the later chapters, with the coordinator of one machine.
func (n *newcomer) rest(url string) {
	t := n.t
	t.Helper()
	_, served := serving(t, "serve", filepath.Join(n.dir, "s"), "--listen", "127.0.0.1:0", "--while-stdin", "--third-party", "--tpc-allow",
		"127.0.0.1", "--tpc-private")
	n.means("https://eos.example.org:8444/eos/data", served)
	n.means("/eos/data", filepath.Join(n.dir, "s"))
	n.means("https://weir.example.org:9443", url)
	ran := 0
	for _, chapter := range []string{"## Sites without an agent", "## Datasets", "## Requests", "## Scheduler", "## Monitoring"} {
		for _, line := range commands(section(t, "transfer.md", chapter)) {
			n.does(line)
			ran++
		}
	}
	if ran < 20 {
		t.Errorf("only %d commands found", ran)
	}
	if text, err := os.ReadFile(filepath.Join(n.dir, "b/store/run2/f1")); err != nil || string(text) != "a/incoming/run2/f1" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(n.dir, "manifest.json")); err != nil || !strings.Contains(string(text), `"completed"`) {
		t.Errorf("%s, %v", text, err)
	}
}

// The password of a database comes from the environment or from ~/.pgpass, and is not visible in
// the list of processes. The contents of a database file can be moved to PostgreSQL.
func TestTransferPagePostgreSQL(t *testing.T) {
	tier.Full(t, "the page, line by line")
	t.Parallel()
	p := labtest.Start(t, lab.PostgreSQLConfig{Careless: true})
	account, where, _ := strings.Cut(strings.TrimPrefix(p.URL, "postgres://"), "@")
	user, password, _ := strings.Cut(account, ":")
	host, _, _ := strings.Cut(where, "/")
	lines := commands(section(t, "transfer.md", "## Database"))
	if len(lines) != 4 {
		t.Fatalf("%q", lines)
	}
	for _, how := range []string{".pgpass", "PGPASSWORD"} {
		n := newNewcomer(t)
		n.means("secret", password)
		n.means("postgres://weir@db.example.org/weir", "postgres://"+user+"@"+where)
		last := lines[1]
		if how == ".pgpass" {
			n.write(".pgpass", host+":*:"+user+":"+password+"\n")
			n.moves(lines[2])
			last = lines[3]
		} else {
			n.does(lines[0])
		}
		cmd, said := n.stays(strings.NewReplacer(n.here...).Replace(last) + " --listen 127.0.0.1:0")
		shown, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "cmdline"))
		if err != nil || !strings.HasPrefix(said, "coordinator at ") || strings.Contains(string(shown), password) ||
			!strings.Contains(string(shown), "postgres://") {
			t.Errorf("%s: %q, %q, %v", how, said, shown, err)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
	}
}

// moves starts a coordinator with a database file, ends it, and moves its database.
func (n *newcomer) moves(line string) {
	n.t.Helper()
	cmd, _ := n.stays("weir coordinator --listen 127.0.0.1:0")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		n.t.Error(err)
	}
	var out []byte
	require.Eventually(n.t, "the coordinator has ended", func() bool { // until it has ended
		move := exec.CommandContext(n.t.Context(), "sh", "-c", strings.NewReplacer(n.here...).Replace(line))
		move.Dir, move.Env = n.dir, n.env
		var err error
		out, err = move.CombinedOutput()
		return err == nil || !strings.Contains(string(out), "is in use")
	})
	if !strings.Contains(string(out), "All rows are copied") {
		n.t.Errorf("%s: %s", line, out)
	}
}

// The services of the page are started with existing options, and its tables contain each fault,
// status and state.
func TestTransferPageTells(t *testing.T) {
	t.Parallel()
	page := require.File(t, "../../docs/transfer.md")
	starts := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/weir (.*)$`).FindAllSubmatch(page, -1)
	if len(starts) != 2 {
		t.Errorf("%d services", len(starts))
	}
	for _, s := range starts {
		if code, said := started(t, append(strings.Fields(string(s[1])), "--help")...).ended(); code != exitFine {
			t.Errorf("%s: exit code %d\n%s", s[1], code, said)
		}
	}
	code := require.File(t, "../../transfer/transfer.go")
	words := regexp.MustCompile(`(?m)^\t\w+ +(?:Status|State|ErrorClass) += "([^"]+)"`).FindAllSubmatch(code, -1)
	if len(words) < 25 {
		t.Errorf("%d words", len(words))
	}
	for _, w := range words {
		if !strings.Contains(string(page), "\n| `"+string(w[1])+"` |") {
			t.Errorf("no table has %s", w[1])
		}
	}
}
