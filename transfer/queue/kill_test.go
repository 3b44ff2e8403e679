package queue

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"weir/internal/db"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/dbtest"
	"weir/transfer"
)

const childURL = "WEIR_TEST_QUEUE"

// A process that is killed at any moment has lost no confirmed write, and leaves a database that
// meets the invariants; another process continues from there.
func TestKill(t *testing.T) {
	tier.Slow(t, "kills processes")
	t.Parallel()
	for _, kind := range []struct {
		name string
		url  func(testing.TB) string
	}{{"SQLite", dbtest.File}, {"PostgreSQL", dbtest.Server}} {
		t.Run(kind.name, func(t *testing.T) {
			url := kind.url(t)
			told := map[string]string{}
			for round := range 4 {
				killed(t, url, 5+40*round, told)
				d, err := db.Open(t.Context(), url, db.Options{})
				require.NoError(t, err)
				w := newWorld(t, d, Options{})
				w.audit()
				for id, state := range told {
					var item int64
					fmt.Sscan(id, &item)
					if one := w.item(item); state == "done" && one.State != transfer.Done && one.State != transfer.Skipped || state == "leased" &&
						one.State == transfer.Queued && one.Tries == 0 {
						t.Errorf("it was told that %d is %s, it is %s", item, state, one.State)
					}
				}
				require.NoError(t, d.Close())
			}
			if len(told) < 20 {
				t.Errorf("only %d files were begun in all", len(told))
			}
		})
	}
}

// killed runs a child until it has printed a number of lines, and kills it.
func killed(t *testing.T, url string, lines int, told map[string]string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.timeout=60s")
	c.Env = append(os.Environ(), childURL+"="+url)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	n := 0
	for scan := bufio.NewScanner(out); scan.Scan(); {
		if state, id, ok := strings.Cut(scan.Text(), " "); ok && (state == "leased" || state == "done") {
			told[id] = state
		} else if state == "FAIL" || state == "---" {
			t.Errorf("the child: %s", scan.Text())
		}
		if n++; n == lines {
			require.NoError(t, c.Process.Kill())
		}
	}
	_ = c.Wait() // it was killed
	if n < lines {
		t.Errorf("the child ended by itself after %d of %d lines", n, lines)
	}
}

// TestChild is the process that TestKill kills.
func TestChild(t *testing.T) {
	url := os.Getenv(childURL)
	if url == "" {
		t.Skip("it is run by TestKill")
	}
	d, err := db.Open(t.Context(), url, db.Options{})
	require.NoError(t, err)
	w := newWorld(t, d, Options{})
	w.now = time.Now()
	w.site("A", true, -1)
	w.site("C", true, -1)
	w.dataset("/d", 400, "A")
	_, err = w.Submit(w.ctx, "alice", transfer.Submission{Dataset: "/d", To: "C", Approve: true})
	w.must(err)
	go func() {
		for more := true; more && err == nil; {
			more, err = w.Work(w.ctx, 7)
		}
	}()
	for begin := time.Now(); time.Since(begin) < 50*time.Second; {
		for _, l := range w.lease("C", 3) {
			fmt.Printf("leased %d\n", l.Item)
			w.report(success(l))
			fmt.Printf("done %d\n", l.Item)
		}
		w.pass(time.Second)
	}
}
