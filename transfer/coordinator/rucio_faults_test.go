package coordinator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/db"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer/access"
	"weir/transfer/state"
)

// running starts a part of testdata/rucio.py in the background. kill kills it as kill -9 does; wait
// waits for its end and returns its error.
func (r *rucio) running(part string, in, out any) (kill func(), wait func() error) {
	r.T.Helper()
	file := r.input(in)
	ctx, cancel := context.WithTimeout(r.T.Context(), 3*time.Hour)
	done := make(chan error, 1)
	go func() {
		said, err := r.r.Run(ctx, "python3", "-c", rucioPython, part, file)
		if err == nil {
			said = strings.TrimSpace(said)
			err = json.Unmarshal([]byte(said[strings.LastIndex(said, "\n")+1:]), out)
		}
		done <- err
	}()
	wait = func() error {
		defer cancel()
		return <-done
	}
	return cancel, wait
}

// once runs daemons of Rucio once, in one process.
func (r *rucio) once(daemons ...string) {
	r.T.Helper()
	r.do("once", map[string]any{"daemons": daemons}, &struct{}{})
}

// arrived returns the number of files below a folder that have their final names.
func arrived(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !e.IsDir() && !strings.HasPrefix(e.Name(), ".weir-") {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Rucio's daemons and weir are killed while a rule is carried out, and no file is lost or copied
// twice, with SQLite and with PostgreSQL. If WEIR_RUCIO_FILES is set, it is the number of files,
// and the test kills no process but measures the times that Rucio waits. These files have a hundred
// different contents, and the files at the source are hard links.
func TestRucioKilled(t *testing.T) {
	tier.Full(t, "Rucio")
	t.Parallel()
	each(t, func(t *testing.T, conf Config) { rucioKilled(t, conf.DB) })
}

func rucioKilled(t *testing.T, database string) {
	r := startRucio(t, true, func(c *Config, _ *lab.RucioConfig) { c.DB = database })
	r.setup()
	n, size, bulk, contents, measured := 200, 100_000, 10, 200, false
	if many, err := strconv.Atoi(os.Getenv("WEIR_RUCIO_FILES")); err == nil {
		n, size, bulk, contents, measured = many, 1<<20, 100, 100, true
	}
	var files []rucioFile
	content := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%07d\n", i%contents), size/8) }
	for i := range n {
		data := content(i)
		files = append(files, rucioFile{"f" + strconv.Itoa(i), len(data), adlerOf(data)})
	}
	made := r.rule("many", files, "Y", "X")
	for i, f := range files {
		at := filepath.Join("store", made.Paths[f.Name])
		if i < contents {
			r.put(r.x, at, content(i))
			continue
		}
		to := filepath.Join(r.x.Data, at)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Link(filepath.Join(r.x.Data, "store",
			made.Paths[files[i%contents].Name]), to)); err != nil {
			t.Fatal(err)
		}
	}
	in := map[string]any{"fts": r.fts, "bulk": bulk, "ended": n}
	var out struct {
		Wall, Asked float64
		Took        map[string]float64
	}
	kill, wait := r.running("daemons", in, &out)
	store := filepath.Join(r.y.Data, "store")
	if !measured {
		until(t, "some files arrive", func() bool { return arrived(t, store) >= n/10 })
		kill()
		if err := wait(); err == nil {
			t.Error("the daemons were not killed")
		}
		_, wait = r.running("daemons", in, &out)
		r.kill()
		r.respawn()
		until(t, "more files arrive", func() bool { return arrived(t, store) >= n/2 })
		r.kill()
		r.respawn()
	}
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if state := r.state(map[string]string{"many": made.Rule}); state.Rules["many"] != "OK" || len(state.Open) > 0 {
		t.Errorf("%s, %d requests are open", state.Rules["many"], len(state.Open))
	}
	for i, f := range files {
		got, err := os.ReadFile(filepath.Join(store, made.Paths[f.Name]))
		if err != nil || !bytes.Equal(got, content(i)) {
			t.Errorf("%s: %d bytes, %v", f.Name, len(got), err)
		}
	}
	before := childrenCPU(t)
	r.kill()
	used := childrenCPU(t) - before // of weir: no other child has ended meanwhile
	d, err := db.Open(t.Context(), cmp.Or(database, "sqlite:"+filepath.Join(r.conf.State, state.TableFile)), db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	copied, err := db.Select(t.Context(), d, db.Value[int64], `SELECT COUNT(*) FROM attempt a JOIN pair p ON p.item = a.item
		WHERE a.fault = '' AND NOT a.existed GROUP BY p.dest`)
	if err != nil {
		t.Fatal(err)
	}
	for _, times := range copied {
		if times != 1 {
			t.Errorf("a file was copied %d times", times)
		}
	}
	share := func(seconds float64) string { return fmt.Sprintf("%.1f s (%.1f%%)", seconds, 100*seconds/out.Wall) }
	t.Logf("%d files: %d copied in this test; %.1f s in Rucio's daemons, of which %s in requests to weir and %s in rounds without news; "+
		"CPU time of weir %s; %v", n, len(copied), out.Wall, share(out.Asked), share(out.Took["idle"]), share(used.Seconds()), out.Took)
	if measured && n >= 10_000 && out.Asked > out.Wall/10 {
		t.Error("more than a tenth of the time was spent in requests to weir")
	}
}

// childrenCPU returns the CPU time of all child processes that have ended.
func childrenCPU(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A rule that ends cancels its files in weir, also while they are copied, and leaves no file at the
// destination. If the nearer of a file's two replicas is lost, the file is copied from the other
// replica. While a destination is full, its files wait and report the reason.
func TestRucioRules(t *testing.T) {
	tier.Full(t, "Rucio")
	t.Parallel()
	r := startRucio(t, false)
	slow := labtest.Start(t, lab.XRootDConfig{Copies: true, Authority: r.x,
		Extra: "xrootd.fslib ++ throttle\nthrottle.throttle data 1m\n"})
	small := rseOf(t, "SMALL", r.y)
	small.Prefix = strings.TrimSuffix(small.Prefix, "store") + "small"
	r.setup(rseOf(t, "SLOW", slow), small)
	data := bytes.Repeat([]byte("two replicas\n"), 1000)
	large := rucioFile{"large", 64 << 20, "00000001"}
	two := r.rule("two", []rucioFile{{"twice", len(data), adlerOf(data)}}, "Y", "X", "SLOW")
	r.put(r.x, filepath.Join("store", two.Paths["twice"]), data)
	ended := r.rule("ended", []rucioFile{large}, "Y", "SLOW")
	r.put(slow, filepath.Join("store", ended.Paths["large"]), make([]byte, large.Size))
	r.once("submitter")
	folder := filepath.Dir(filepath.Join(r.y.Data, "store", ended.Paths["large"]))
	until(t, "the large file is being copied", func() bool {
		found, err := filepath.Glob(filepath.Join(folder, ".weir-*"))
		return err == nil && len(found) > 0
	})
	r.do("end", map[string]string{"rule": ended.Rule}, &struct{}{})
	r.daemon("rucio-judge-cleaner")
	admin := r.ftsUser("admin", access.MayAdmin)
	var jobs []ftsJob
	until(t, "only the other job is open, if any", func() bool {
		if status := admin.ask("GET", "/jobs", "", &jobs); status != 200 {
			t.Fatalf("%d", status)
		}
		return len(jobs) == 0
	})
	until(t, "nothing is left of the large file", func() bool {
		left, err := filepath.Glob(filepath.Join(folder, "*large*"))
		parts, partsErr := filepath.Glob(filepath.Join(folder, ".weir-*"))
		return errors.Join(err, partsErr) == nil && len(left)+len(parts) == 0
	})
	r.once("poller", "finisher")
	state := r.state(map[string]string{"two": two.Rule, "ended": ended.Rule})
	if state.Rules["two"] != "OK" || state.Rules["ended"] != "RuleNotFound" || len(state.Open) > 0 {
		t.Errorf("%+v", state)
	}
	sources, err := db.Select(t.Context(), r.db, db.Value[string], "SELECT sources FROM pair WHERE dest LIKE ?", "%twice")
	if err != nil || len(sources) != 1 || strings.Count(sources[0], `"url"`) != 2 {
		t.Errorf("%v, %v", sources, err)
	}

	if os.Geteuid() != 0 {
		t.Skip("only root can make a destination that is full")
	}
	at := filepath.Join(r.y.Data, "small")
	mountSmall(t, at)
	full := r.rule("full", []rucioFile{{"big", 4 << 20, "00000001"}}, "SMALL", "X")
	r.put(r.x, filepath.Join("store", full.Paths["big"]), make([]byte, 4<<20))
	r.once("submitter")
	until(t, "the file waits for space", func() bool {
		var jobs []ftsJob
		if status := admin.ask("GET", "/jobs", "", &jobs); status != 200 || len(jobs) != 1 {
			t.Fatalf("%d %+v", status, jobs)
		}
		var j ftsJob
		admin.ask("GET", "/jobs/"+jobs[0].ID+"?files=file_state,reason", "", &j)
		return j.Files[0].State == "SUBMITTED" && strings.Contains(j.Files[0].Reason, "DESTINATION [28] No space left on device")
	})
	if n := arrived(t, at); n != 0 {
		t.Errorf("%d files at the full destination", n)
	}
	r.once("poller")
	if state := r.state(map[string]string{"full": full.Rule}); len(state.Open) != 1 || state.Open[0].State != "SUBMITTED" {
		t.Errorf("%+v", state)
	}
}
