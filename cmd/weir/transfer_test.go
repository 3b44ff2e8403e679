package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer"
	"weir/transfer/client"
	"weir/transfer/trial"
)

// A moving is a coordinator with sites, each a process, and a user.
type moving struct {
	*trial.Trial
	t *testing.T
}

// rooms starts a coordinator with sites. The logs are shown if the test fails.
func rooms(t *testing.T, o trial.Options) *moving {
	t.Helper()
	command, err := exec.LookPath("weir") // testscript puts this binary under that name into the PATH
	require.NoError(t, err)
	o.Program, o.Dir = []string{command}, t.TempDir()
	tr, err := trial.Start(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, logsIn(o.Dir))
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(logsIn(o.Dir))
		}
	})
	return &moving{tr, t}
}

func logsIn(dir string) string {
	var all strings.Builder
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, l := range logs {
		text, _ := os.ReadFile(l)
		all.WriteString(filepath.Base(l) + ":\n" + string(text))
	}
	return all.String()
}

// weir calls the command like a user, and returns its exit code, standard output and standard
// error.
func (r *moving) weir(args ...string) (code exitCode, out, said string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "weir", args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Dir = r.Env(), &stdout, &stderr, r.Dir()
	err := cmd.Run()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		r.t.Fatal(err)
	}
	return exitCode(cmd.ProcessState.ExitCode()), stdout.String(), stderr.String()
}

// wants calls the command and fails the test unless it ends with the code and
// prints all of the words.
func (r *moving) wants(code exitCode, args []string, words ...string) string {
	r.t.Helper()
	got, out, said := r.weir(args...)
	if got != code {
		r.t.Errorf("weir %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, out, said)
	}
	for _, w := range words {
		if !strings.Contains(out+said, w) {
			r.t.Errorf("weir %s: no %q in\n%s%s", strings.Join(args, " "), w, out, said)
		}
	}
	return out
}

func words(text string) []string { return strings.Fields(text) }

// submits requests a dataset without waiting.
func (r *moving) submits(s transfer.Submission) int64 {
	r.t.Helper()
	id, err := r.Submit(r.t.Context(), s)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// fills makes a dataset at a site.
func (r *moving) fills(site, dataset string, files ...trial.File) {
	r.t.Helper()
	if err := errors.Join(r.Fill(site, files), r.Add(r.t.Context(), dataset, site)); err != nil {
		r.t.Fatal(err)
	}
}

// ends waits for the end of a request.
func (r *moving) ends(id int64) transfer.Manifest {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	m, err := r.Wait(ctx, id)
	if err != nil {
		_, out, said := r.weir("transfer", "show", strconv.FormatInt(id, 10), "--attempts")
		_, why, _ := r.weir("transfer", "explain", strconv.FormatInt(id, 10))
		r.t.Fatalf("request %d does not end: %v\n%s%s%s", id, err, out, said, why)
	}
	return m
}

// completes waits for the end of a request, and fails the test unless all files are correct.
func (r *moving) completes(id int64, files ...trial.File) transfer.Manifest {
	r.t.Helper()
	m := r.ends(id)
	if m.Request.Status != transfer.Completed {
		r.t.Errorf("request %d is %s: %+v", id, m.Request.Status, m.Items)
	}
	for _, f := range files {
		if err := r.Right(m.Request.To, f); err != nil {
			r.t.Error(err)
		}
	}
	return m
}

// attempts returns the attempts of a request in the order of time.
func (r *moving) attempts(id int64) []transfer.Attempt {
	r.t.Helper()
	c, err := r.Client()
	if err != nil {
		r.t.Fatal(err)
	}
	all, err := c.Attempts(r.t.Context(), id, 0, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// A dataset is added, found, requested, followed and listed with commands only.
func TestTransferByHand(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	r := rooms(t, trial.Options{})
	files := trial.Files("/store/run1", 10, 300_000)
	require.NoError(t, r.Fill("A", files))
	r.wants(exitFine, words("site list"), "A ", "B ", "C ", "agent", "up", "http://127.0.0.1")
	r.wants(exitFine, words("dataset list"), "no datasets")
	r.wants(exitFine, words("dataset add /store/run1 --site A"), "10 files, 3.00 MB")
	r.wants(exitFine, words("dataset list"), "/store/run1", "10", "3.00 MB", "A")
	r.wants(exitFine, words("dataset files /store/run1"), "/store/run1/file-0007", "300 kB")
	r.wants(exitFine, words("transfer submit /store/run1 --to C"), "request 1: /store/run1 to C: awaiting approval", "weir transfer approve 1")
	r.wants(exitFine, words("transfer explain 1"), "approv")
	r.wants(exitFine, words("transfer approve 1"), "request 1 is approved")
	r.wants(exitFine, words("transfer show 1 --wait"), "request 1 is completed: 10 of 10 files, 3.00 MB, at C", "file-0010",
		"sha256 of the list")
	for _, f := range files {
		if err := r.Right("C", f); err != nil {
			t.Error(err)
		}
	}
	r.wants(exitFine, words("transfer submit /store/run1 --to C --approve --wait"), "completed", "(10 existed already)", "skipped")
	r.wants(exitFine, words("dataset show /store/run1"), "A, C")
	r.wants(exitFine, words("transfer show 1 --attempts"), "A -> C", "done, verified")
	r.wants(exitFine, words("transfer list --to C"), "completed")
	r.wants(exitFine, words("transfer backtest"), "recorded attempts")
	r.wants(exitFine, words("site show C"), "A -> C")
	var m transfer.Manifest
	out := r.wants(exitFine, words("transfer submit /store/run1 --to B --approve --wait --json"))
	if err := json.Unmarshal([]byte(out), &m); err != nil || len(m.Items) != 10 || m.Request.Status != transfer.Completed {
		t.Errorf("%v: %s", err, out)
	}
	r.wants(exitFine, []string{"__complete", "transfer", "submit", "--to", ""}, "A\tagent", "B\tagent")
	r.wants(exitFine, words("__complete dataset show /st"), "/store/run1\t10 files")
	r.wants(exitFine, []string{"__complete", "transfer", "show", ""}, "1\t/store/run1 to C: completed")
}

// Files can also come from a local folder, a table or a listing. Omitted files are reported, and
// files that contradict the catalog are refused.
func TestDatasetAdd(t *testing.T) {
	t.Parallel()
	r := rooms(t, trial.Options{Sites: []trial.Site{{Name: "A"}, {Name: "B"}}})
	var files []trial.File
	for _, dataset := range []string{"/store/local", "/store/table", "/store/listed"} {
		files = append(files, trial.Files(dataset, 3, 1000)...)
		files = append(files, trial.Files(dataset+"/block", 2, 1000)...)
	}
	require.NoError(t, r.Fill("A", files))
	r.wants(exitFine, words("dataset add /store/local --site A --local "+r.Root("A")), "5 files, 5.00 kB")
	table := filepath.Join(r.Dir(), "table.csv")
	require.NoError(t, os.WriteFile(table, []byte("name,size\n/store/table/file-0001,1000\n/store/table/block/file-0001,1000\n"), 0o600))
	r.wants(exitFine, words("dataset add /store/table --site A --csv "+table), "2 files, 2.00 kB")
	server := r.serves(r.Root("A"))
	r.wants(exitFine, words("dataset add /store/listed --site A --list "+server), "5 files, 5.00 kB")
	r.wants(exitFine, words("dataset list"), "/store/local   2       5", "/store/table   1       2", "/store/listed  2       5")
	for _, dataset := range []string{"/store/local", "/store/listed"} {
		r.completes(r.submits(transfer.Submission{Dataset: dataset, To: "B"}))
	}
	r.completes(r.submits(transfer.Submission{Dataset: "/store/table", To: "B", Unchecked: true}))
	require.NoError(t, os.WriteFile(table, []byte("name,size\n/store/table/file-0001,1001\n"), 0o600))
	r.wants(exitError, words("dataset add /store/table --site A --csv "+table), "/store/table/file-0001", "1000")
	require.NoError(t, os.WriteFile(table, []byte("name,length\n"), 0o600))
	r.wants(exitError, words("dataset add /store/table --site A --csv "+table), "table.csv", "length")
	require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(r.Root("A"), "store/local/leak")))
	r.wants(exitMissed, words("dataset add /store/local --site A"), "leak", "5 files")
	r.wants(exitUsage, words("dataset add /store/local --site A --csv x --local y"), "choose one")
	r.wants(exitError, words("dataset add /store/local --site A --list gopher://x/"), "davs://")
	web := httptest.NewServer(http.HandlerFunc(difficult))
	defer web.Close()
	secret := filepath.Join(r.Dir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("wrong\n"), 0o600))
	for list, hint := range map[string]string{
		"http://127.0.0.1:1/":                          "check host and port of target",
		web.URL + "/token":                             "name a file with a token by --list-token-file",
		web.URL + "/token --list-token-file " + secret: "the server refused the token in " + secret,
		strings.Replace(web.URL, "http", "https", 1):   "use target: http://",
		web.URL + "/unlisted":                          "have the files added from a table (--csv)",
	} {
		out := r.wants(exitError, words("dataset add /store/local --site A --path / --list "+list), "hint: ", hint)
		if strings.Contains(out, "coordinator") {
			t.Errorf("%s is taken for the coordinator: %s", list, out)
		}
	}
	r.wants(exitUsage, words("dataset add /store/local --site A --list "+web.URL+"/sizes --list-token-file "+secret+"0"), secret+"0")
	r.wants(exitFine, words("dataset remove /store/local"), "its files stay where they are")
	r.wants(exitError, words("dataset show /store/local"), "/store/local")
}

// Two servers without weir copy to each other on request of the coordinator, and agents pull from
// and push to such servers.
func TestTransferByThirdParties(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	r := rooms(t, trial.Options{Sites: []trial.Site{{Name: "A"}}})
	files := trial.Files("/store/run1", 5, 100_000)
	root := func(name string) string { return filepath.Join(r.Dir(), "site-"+name) }
	for _, name := range []string{"S", "T"} {
		require.NoError(t, os.Mkdir(root(name), 0o750))
		url := r.serves(root(name), "--third-party", "--tpc-allow", "127.0.0.1", "--tpc-private")
		r.wants(exitFine, words("site add "+name+" --url "+url), "site "+name+" is at "+url)
	}
	require.NoError(t, r.Fill("A", files))
	r.wants(exitFine, words("dataset add /store/run1 --site A"))
	for _, to := range []string{"S", "T"} {
		from := map[string]string{"S": "A", "T": "S"}[to]
		r.wants(exitFine, words("transfer submit /store/run1 --approve --wait --to "+to+" --from "+from), "completed")
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join(root(to), f.Name))
			want, _ := os.ReadFile(filepath.Join(r.Root("A"), f.Name))
			if err != nil || !bytes.Equal(text, want) {
				t.Errorf("%s at %s: %v, %d bytes", f.Name, to, err, len(text))
			}
		}
	}
	for id, mode := range map[int64]transfer.Mode{1: transfer.Push, 2: transfer.Third} {
		for _, a := range r.attempts(id) {
			if a.Mode != mode {
				t.Errorf("request %d: %+v", id, a)
			}
		}
	}
	require.NoError(t, os.RemoveAll(filepath.Join(r.Root("A"), "store")))
	more := trial.Files("/store/run2", 5, 100_000)
	for _, f := range more {
		if err := errors.Join(os.MkdirAll(filepath.Join(root("T"), "store/run2"), 0o750),
			os.WriteFile(filepath.Join(root("T"), f.Name), []byte(f.Name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	r.wants(exitFine, words("dataset add /store/run2 --site T --local "+root("T")), "5 files")
	r.wants(exitFine, words("transfer submit /store/run2 --approve --wait --to A"), "completed")
}

// serves starts weir serve and returns its URL.
func (r *moving) serves(dir string, more ...string) string {
	r.t.Helper()
	p := &process{Cmd: exec.CommandContext(r.t.Context(), "weir", append([]string{"serve", dir}, more...)...)}
	var out locked
	p.Stdout, p.Stderr = &out, &out
	if err := p.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { p.kill(r.t) })
	require.Eventually(r.t, "a line of output", func() bool { return strings.HasSuffix(out.String(), "\n") })
	return strings.TrimSpace(strings.TrimPrefix(out.String(), "serving "))
}

// Invalid requests are refused with an error that names the mistake or the valid values.
func TestTransferMistakes(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	r := rooms(t, trial.Options{Sites: []trial.Site{{Name: "A"}}})
	r.fills("A", "/store/run1", trial.Files("/store/run1", 1, 10)...)
	r.wants(exitError, words("transfer submit /store/run1 --to Z"), "Z")
	r.wants(exitError, words("transfer submit /store/none --to A"), "/store/none")
	r.wants(exitError, words("transfer show 99"), "99")
	r.wants(exitUsage, words("transfer show x"), "invalid request number")
	r.wants(exitError, words("dataset add /store/run2 --site A"), "run2")
	r.wants(exitError, words("dataset add /store/run2 --site Z"), "Z")
	r.wants(exitError, words("dataset show /store/none"), "/store/none")
	r.wants(exitError, words("site show Z"), "there are: A")
	bad := filepath.Join(r.Dir(), "bad.token")
	require.NoError(t, os.WriteFile(bad, []byte("nonsense\n"), 0o600))
	r.wants(exitError, words("site list --token-file "+bad), "refuses this token", "weir coordinator token")
	r.wants(exitFine, words("coordinator token --name alice --role read --life 1h"), ".")
	token := r.wants(exitFine, words("coordinator token --name alice --role read --life 1h"))
	require.NoError(t, os.WriteFile(bad, []byte(token), 0o600))
	r.wants(exitFine, words("site list --token-file "+bad), "A")
	r.wants(exitError, words("transfer submit /store/run1 --to A --token-file "+bad), "role submit", "alice")
	require.NoError(t, r.Coordinator().Kill())
	r.wants(exitError, words("site list"), "does not answer", "weir coordinator")
}

// Files that are missing at the source are listed with reasons, and the other files arrive.
func TestTransferPartial(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	r := rooms(t, trial.Options{Sites: []trial.Site{{Name: "A"}, {Name: "C"}}})
	files := trial.Files("/store/run1", 10, 1000)
	r.fills("A", "/store/run1", files...)
	for _, f := range files[3:5] {
		require.NoError(t, os.Remove(filepath.Join(r.Root("A"), f.Name)))
	}
	r.wants(exitMissed, words("transfer submit /store/run1 --to C --approve --wait --tries 2"), "is partial: 8 of 10 files", "file-0004",
		"file-0005", "failed")
	r.wants(exitMissed, words("transfer manifest 1"), "file-0004")
	r.wants(exitMissed, words("transfer manifest 1 --json"))
	r.failuresAreExplained(1, files[3:5])
	require.NoError(t, r.Fill("A", files[3:5]))
	r.wants(exitFine, words("transfer retry 1"), "goes on")
	r.completes(1, files...)
	r.wants(exitFine, words("transfer manifest 1"))
}

// failuresAreExplained fails the test unless these are the failed files of a request that has ended, which transfer explain explains, and
// each has the number of its failed attempts.
func (r *moving) failuresAreExplained(id int64, missing []trial.File) {
	r.t.Helper()
	var shown struct {
		Request transfer.Request
		Items   []transfer.Item
	}
	require.NoError(r.t, json.Unmarshal([]byte(r.wants(exitFine, words("transfer show 1 --json"))), &shown))
	failed := map[int64]int{}
	for _, a := range r.attempts(id) {
		if a.Fault != "" {
			failed[a.Item]++
		}
	}
	for i, f := range missing {
		if one := shown.Items[i]; one.Name != f.Name || one.Tries < 1 || one.Tries != failed[one.ID] {
			r.t.Errorf("%+v has %d failed attempts", one, failed[one.ID])
		}
	}
	if q := shown.Request; q.Rate <= 0 || q.Rate != float64(q.Count.DoneBytes)/q.Ended.Sub(q.Began).Seconds() {
		r.t.Errorf("the rate is %v: %+v", q.Rate, q)
	}
	var e transfer.Explanation
	require.NoError(r.t, json.Unmarshal([]byte(r.wants(exitFine, words("transfer explain 1 --json"))), &e))
	explained := int64(0)
	for _, reason := range e.Reasons {
		explained += reason.Files
		if !strings.Contains(reason.Text, "failed") {
			r.t.Errorf("%+v", reason)
		}
	}
	if explained != int64(len(missing)) {
		r.t.Errorf("%+v", e.Reasons)
	}
}

// Transfers also work with PostgreSQL. If its connection is cut while files move, no files are
// lost, and the coordinator goes on.
func TestTransferOnPostgreSQL(t *testing.T) {
	tier.Full(t, "PostgreSQL")
	t.Parallel()
	labtest.Need(t, "psql")
	p := labtest.Start(t, lab.PostgreSQLConfig{Careless: true})
	r := rooms(t, trial.Options{DB: p.URL})
	if seen, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.Coordinator().Pid())); err != nil ||
		strings.Contains(string(seen), "postgres:") {
		t.Errorf("everybody sees %q, %v", seen, err)
	}
	files := trial.Files("/store/run1", 200, 10_000)
	r.fills("A", "/store/run1", files...)
	one := r.submits(transfer.Submission{Dataset: "/store/run1", To: "B"})
	two := r.submits(transfer.Submission{Dataset: "/store/run1", To: "C"})
	cut := exec.CommandContext(t.Context(), "psql", p.URL, "-c", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> "+
		"pg_backend_pid() AND datname IS NOT NULL")
	if out, err := cut.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	r.completes(one, files...)
	r.completes(two, files...)
}

// held starts a copy of one large file from A to B and stops A when a part has arrived. A runs only
// for moments, so that on a busy machine, too, no more than a part arrives. release lets A go on.
func (r *moving) held(f trial.File) (id int64, release func()) {
	r.t.Helper()
	r.fills("A", filepath.Dir(f.Name), f)
	pid := r.Site("A").Pid()
	id = r.submits(transfer.Submission{Dataset: filepath.Dir(f.Name), To: "B"})
	require.Eventually(r.t, "a tenth of the file", func() bool {
		require.NoError(r.t, syscall.Kill(pid, syscall.SIGCONT))
		time.Sleep(2 * time.Millisecond)
		require.NoError(r.t, syscall.Kill(pid, syscall.SIGSTOP))
		return arrived(r.Root("B")) > f.Size/10
	})
	if at := arrived(r.Root("B")); at >= f.Size {
		r.t.Fatalf("the whole file of %d bytes had arrived before it could be held", f.Size)
	}
	release = func() { _ = syscall.Kill(pid, syscall.SIGCONT) } // it may have ended
	r.t.Cleanup(release)
	return id, release
}

// arrived returns the space that parts of files take below a root.
func arrived(root string) (bytes int64) {
	parts, _ := filepath.Glob(filepath.Join(root, ".weir", "*.part"))
	for _, p := range parts {
		var s syscall.Stat_t
		if syscall.Stat(p, &s) == nil {
			bytes += s.Blocks * 512
		}
	}
	return bytes
}

const gibibyte = 1 << 30

// An agent that is killed in the middle of a large file continues the copy when it is started
// again.
func TestAgentKilledInTheMiddle(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	r := rooms(t, trial.Options{Sites: []trial.Site{{Name: "A"}, {Name: "B"}}})
	f := trial.File{Name: "/store/large/file", Size: gibibyte}
	id, release := r.held(f)
	require.NoError(t, r.Site("B").Kill())
	release()
	require.NoError(t, r.Site("B").Start(t.Context()))
	r.completes(id, f)
	all := r.attempts(id)
	last := all[len(all)-1]
	if len(all) < 2 || last.Fault != "" || last.Resumed == 0 || last.Moved+last.Resumed < f.Size {
		t.Errorf("%+v", all)
	}
}

// While the coordinator is down, a copy goes on to its end, and the coordinator records it after
// its restart.
func TestCoordinatorKilledInTheMiddle(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	r := rooms(t, trial.Options{Sites: []trial.Site{{Name: "A"}, {Name: "B"}}})
	f := trial.File{Name: "/store/large/file", Size: gibibyte}
	id, release := r.held(f)
	require.NoError(t, r.Coordinator().Kill())
	release()
	require.Eventually(t, "the whole file", func() bool {
		info, err := os.Stat(filepath.Join(r.Root("B"), f.Name))
		return err == nil && info.Size() == f.Size
	})
	require.NoError(t, r.Coordinator().Start(t.Context()))
	r.completes(id, f)
	if all := r.attempts(id); len(all) != 1 || all[0].Fault != "" || !all[0].Verified {
		t.Errorf("%+v", all)
	}
}

// A cancellation reaches the running copy, and the part that had arrived is removed.
func TestCancelReachesTheCopy(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	r := rooms(t, trial.Options{Sites: []trial.Site{{Name: "A"}, {Name: "B"}}})
	f := trial.File{Name: "/store/large/file", Size: gibibyte}
	id, release := r.held(f)
	defer release()
	begin := time.Now()
	r.wants(exitFine, []string{"transfer", "cancel", strconv.FormatInt(id, 10), "--reason", "wrong site"}, "cancelled")
	require.Eventually(t, "site B has no file", func() bool { return arrived(r.Root("B")) == 0 })
	t.Logf("%v from the command to the end of the copy", time.Since(begin))
	r.wants(exitMissed, []string{"transfer", "show", strconv.FormatInt(id, 10), "--wait"}, "is cancelled", "wrong site")
	if _, err := os.Stat(filepath.Join(r.Root("B"), f.Name)); err == nil {
		t.Error("the file is there")
	}
}

// A site without an endpoint can pull and push files.
func TestSiteBehindAFirewall(t *testing.T) {
	t.Parallel()
	r := rooms(t, trial.Options{Sites: []trial.Site{{Name: "A"}, {Name: "N", NoEndpoint: true}, {Name: "M", NoEndpoint: true}}})
	files := trial.Files("/store/run1", 3, 100_000)
	r.fills("A", "/store/run1", files...)
	r.completes(r.submits(transfer.Submission{Dataset: "/store/run1", To: "N"}), files...)
	more := trial.Files("/store/run2", 3, 100_000)
	r.fills("N", "/store/run2", more...)
	m := r.completes(r.submits(transfer.Submission{Dataset: "/store/run2", To: "A"}), more...)
	for _, i := range m.Items {
		if i.Mode != transfer.Push {
			t.Errorf("%+v", i)
		}
	}
	id := r.submits(transfer.Submission{Dataset: "/store/run2", To: "M", From: []string{"N"}})
	require.Eventually(t, "the reason in weir transfer explain", func() bool {
		_, out, _ := r.weir("transfer", "explain", strconv.FormatInt(id, 10))
		return strings.Contains(out, "endpoint")
	})
}

// A command whose waiting is interrupted prints the command to go on with, and the request goes on.
func TestInterruptOfWaiting(t *testing.T) {
	t.Parallel()
	r := rooms(t, trial.Options{Sites: []trial.Site{{Name: "A"}, {Name: "B"}}})
	files := trial.Files("/store/run1", 1, 10)
	r.fills("A", "/store/run1", files...)
	p := &process{Cmd: exec.CommandContext(t.Context(), "weir", words("transfer submit /store/run1 --to B --wait")...)}
	p.Env, p.Dir = r.Env(), r.Dir()
	var out locked
	p.Stdout, p.Stderr = &out, &out
	require.NoError(t, p.Start())
	require.Eventually(t, "the command to approve it", func() bool { return strings.Contains(out.String(), "weir transfer approve 1") })
	p.send(t, os.Interrupt)
	_ = p.Wait() // its exit code is checked
	if exitCode(p.ProcessState.ExitCode()) != exitInterrupt || !strings.Contains(out.String(), "weir transfer show 1 --wait") {
		t.Errorf("exit code %d: %s", p.ProcessState.ExitCode(), out.String())
	}
	r.wants(exitFine, words("transfer approve 1"))
	r.completes(1, files...)
}

// A locked buffer is written by a process while a test reads it.
type locked struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// While the coordinator is down, no other program gets the port to which the agents will connect.
func TestRestartKeepsThePort(t *testing.T) {
	t.Parallel()
	r := rooms(t, trial.Options{Sites: []trial.Site{{Name: "a"}}})
	conf, err := client.Read(r.ConfigFile())
	require.NoError(t, err)
	for _, p := range []*trial.Process{r.Coordinator(), r.Site("a")} {
		require.NoError(t, p.Kill())
	}
	at := netip.MustParseAddrPort(strings.TrimPrefix(conf.URLs[0], "https://"))
	l, err := (&net.ListenConfig{Control: lab.OnlyPort(int(at.Port()))}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if errors.Is(err, syscall.ENOPROTOOPT) {
		t.Skip("this kernel cannot narrow a socket's range of ports (Linux 6.3 can)")
	}
	if err == nil {
		_ = l.Close()
		t.Errorf("a stranger listens at %s while the coordinator is down", at)
	}
	require.NoError(t, errors.Join(r.Coordinator().Start(t.Context()), r.Site("a").Start(t.Context()), r.Ready(t.Context())))
}
