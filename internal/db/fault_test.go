package db_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weir/internal/db"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/dbtest"
	"weir/lab/labtest"
)

// child is the variable that makes the test binary write to a database until it is killed.
const child = "WEIR_TEST_DB_CHILD"

func TestMain(m *testing.M) {
	if url := os.Getenv(child); url != "" {
		fmt.Fprintln(os.Stderr, writeForEver(url))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeForEver writes from many goroutines, and prints the acknowledged writes.
func writeForEver(url string) error {
	d, err := db.Open(context.Background(), url, db.Options{})
	if err != nil {
		return err
	}
	failed := make(chan error)
	var next atomic.Int64
	for range 30 {
		go func() {
			for {
				name := fmt.Sprint(os.Getpid(), "-", next.Add(1))
				if err := d.Write(context.Background(), insert(name)); err != nil {
					failed <- err
				}
				os.Stdout.WriteString(name + "\n")
			}
		}()
	}
	return <-failed
}

// Acknowledged writes survive kill -9 at any moment.
func TestKilled(t *testing.T) {
	tier.Slow(t, "kills processes")
	for name, url := range map[string]func(testing.TB) string{"SQLite": dbtest.File, "PostgreSQL": dbtest.Server} {
		t.Run(name, func(t *testing.T) {
			url := url(t)
			reopen := func() *db.DB {
				d, err := db.Open(t.Context(), url, db.Options{})
				require.NoError(t, err)
				return d
			}
			d := reopen()
			require.NoError(t, errors.Join(d.Migrate(t.Context(), "things", files()), d.Close()))
			acknowledged := map[string]bool{}
			for round := range 5 {
				maps.Copy(acknowledged, killed(t, url, 300+round*77))
			}
			d = reopen()
			defer d.Close()
			var there []string
			if err := d.Read(t.Context(), func(x *db.Tx) (err error) {
				there, err = db.Column[string](x, "SELECT name FROM thing")
				return err
			}); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d acknowledged, %d there", len(acknowledged), len(there))
			for _, name := range there {
				delete(acknowledged, name)
			}
			if len(acknowledged) > 0 {
				t.Errorf("%d were acknowledged and are lost: %.200q", len(acknowledged), slices.Collect(maps.Keys(acknowledged)))
			}
		})
	}
}

// killed runs a writer, kills it after the given number of writes, and returns the writes that it
// printed.
func killed(t *testing.T, url string, after int) map[string]bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), child+"="+url)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	require.NoError(t, err)
	names := map[string]bool{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		names[lines.Text()] = true
		if len(names) == after {
			_ = cmd.Process.Kill() // the rest of the pipe counts as well
		}
	}
	if err := cmd.Wait(); err == nil || len(names) < after {
		t.Fatalf("it wrote %d: %v: %s", len(names), err, said.String())
	}
	return names
}

// While the server is away writers get the error that the database is busy, and every reported
// outcome is true. When the server is back, the database works without being opened again.
func TestServerLost(t *testing.T) {
	// Without the client's own setting, this server would lose acknowledged writes.
	s := labtest.Start(t, lab.PostgreSQLConfig{Careless: true, Settings: []string{"synchronous_commit=off"}})
	d, err := db.Open(t.Context(), s.URL, db.Options{})
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, d.Migrate(t.Context(), "things", files()))
	var mu sync.Mutex
	outcomes := map[string]error{}
	var all sync.WaitGroup
	stop := make(chan struct{})
	enough := make(chan struct{}, 1000)
	for g := range 20 {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprint(g, "-", i)
				err := d.Write(t.Context(), insert(name))
				mu.Lock()
				outcomes[name] = err
				mu.Unlock()
				select {
				case enough <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 200 {
		<-enough
	}
	s.Kill()
	if err := d.Write(t.Context(), insert("away")); !errors.Is(err, db.ErrBusy) {
		t.Errorf("written to nobody: %v", err)
	}
	if err := d.Read(t.Context(), insert("away")); !errors.Is(err, db.ErrBusy) {
		t.Errorf("read from nobody: %v", err)
	}
	require.NoError(t, s.Restart(t.Context()))
	if err := d.Write(t.Context(), insert("back")); err != nil {
		t.Errorf("the server is back: %v", err)
	}
	close(stop)
	all.Wait()
	there := map[string]bool{}
	if err := d.Read(t.Context(), func(x *db.Tx) error {
		names, err := db.Column[string](x, "SELECT name FROM thing")
		for _, n := range names {
			there[n] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for name, err := range outcomes {
		switch {
		case err == nil && there[name]:
			count["written"]++
		case errors.Is(err, db.ErrUnsure) && errors.Is(err, db.ErrBusy):
			count["unsure"]++
		case errors.Is(err, db.ErrBusy) && !there[name]:
			count["refused"]++
		default:
			t.Errorf("%s: reported %v, there: %v", name, err, there[name])
		}
	}
	t.Log(count)
}

// Two transactions that wait for each other's rows are committed in the end.
func TestDeadlock(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open func() *db.DB) {
		d := prepared(t, open)
		require.NoError(t, errors.Join(d.Write(t.Context(), insert("a")), d.Write(t.Context(), insert("b"))))
		var both, all sync.WaitGroup
		both.Add(2)
		for _, names := range [][]string{{"a", "b"}, {"b", "a"}} {
			all.Go(func() {
				first := true
				err := d.Write(t.Context(), func(x *db.Tx) error {
					for i, name := range names {
						if _, err := x.Exec("UPDATE thing SET n = n + 1 WHERE name = ?", name); err != nil {
							return err
						}
						if i == 0 && first && x.Dialect() == db.PostgreSQL {
							first = false
							both.Done()
							both.Wait()
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if err := d.Read(t.Context(), func(x *db.Tx) error {
			n, err := db.Column[int](x, "SELECT n FROM thing")
			if !slices.Equal(n, []int{2, 2}) {
				t.Errorf("counted %d", n)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// A file that cannot grow is a busy database: no write is partial, earlier writes stay, and writing
// continues when there is room.
func TestDiskFull(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	path := filepath.Join(t.TempDir(), "x.db")
	d, err := db.Open(t.Context(), path, db.Options{})
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, errors.Join(d.Migrate(t.Context(), "things", files()), d.Write(t.Context(), insert("before"))))
	info, err := os.Stat(path + "-wal")
	require.NoError(t, err)
	var was syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	limit := was
	limit.Cur = uint64(info.Size()) + 100_000
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	big := strings.Repeat("x", 20_000)
	var all sync.WaitGroup
	var written, refused atomic.Int64
	for i := range 20 {
		all.Go(func() {
			switch err := d.Write(t.Context(), insert(fmt.Sprint(big, i))); {
			case err == nil:
				written.Add(1)
			case errors.Is(err, db.ErrBusy):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	full := d.Write(t.Context(), insert(strings.Repeat(big, 10)))
	n := count(t, d)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was))
	t.Logf("%d written, %d refused: %v", written.Load(), refused.Load(), full)
	if !errors.Is(full, db.ErrBusy) || refused.Load() == 0 || n != int(written.Load())+1 {
		t.Errorf("%v; %d rows, %d were acknowledged", full, n, written.Load()+1)
	}
	if err := d.Write(t.Context(), insert("after")); err != nil {
		t.Error(err)
	}
}

// A writer that waits for its turn can give up.
func TestTurnGivenUp(t *testing.T) {
	d, err := db.Open(t.Context(), dbtest.File(t), db.Options{})
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, d.Migrate(t.Context(), "things", files()))
	began, finish := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		if err := d.Write(t.Context(), func(x *db.Tx) error {
			close(began)
			<-finish
			return insert("a")(x)
		}); err != nil {
			t.Error(err)
		}
	})
	<-began
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(cancel)
		if err := d.Write(ctx, insert("b")); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	close(finish)
	all.Wait()
	if n := count(t, d); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// BenchmarkWrite reports the number of small transactions a second, of one goroutine and of a
// hundred.
func BenchmarkWrite(b *testing.B) {
	dbtest.EachBench(b, func(b *testing.B, open func() *db.DB) {
		d := open()
		require.NoError(b, d.Migrate(b.Context(), "things", files()))
		var next atomic.Int64
		for _, n := range []int{1, 100} {
			b.Run(fmt.Sprint(n), func(b *testing.B) {
				var all sync.WaitGroup
				var left atomic.Int64
				left.Store(int64(b.N))
				for range n {
					all.Go(func() {
						for left.Add(-1) >= 0 {
							if err := d.Write(context.Background(), insert(fmt.Sprint(next.Add(1)))); err != nil {
								b.Error(err)
							}
						}
					})
				}
				all.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
			})
		}
	})
}

// Readers whose contexts end at any moment, also within BEGIN, do not affect the database: other
// readers and writers go on.
func TestBrokenOffReads(t *testing.T) {
	for name, url := range map[string]func(testing.TB) string{"SQLite": dbtest.File, "PostgreSQL": dbtest.Server} {
		t.Run(name, func(t *testing.T) {
			d, err := db.Open(t.Context(), url(t), db.Options{})
			require.NoError(t, err)
			defer d.Close()
			require.NoError(t, d.Migrate(t.Context(), "things", files()))
			names := func(x *db.Tx) error {
				_, err := db.Column[string](x, "SELECT name FROM thing")
				return err
			}
			var wait sync.WaitGroup
			for i := range 8 {
				wait.Go(func() {
					for n := range 1000 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration((n*8+i)%400)*time.Microsecond)
						_ = d.Read(ctx, names)
						if n%10 == 0 {
							_ = d.Write(ctx, insert(fmt.Sprint(i, "-", n)))
						}
						cancel()
					}
				})
			}
			wait.Wait()
			for range 16 {
				require.NoError(t, errors.Join(d.Read(t.Context(), names), d.Write(t.Context(), func(*db.Tx) error { return nil })))
			}
		})
	}
}
