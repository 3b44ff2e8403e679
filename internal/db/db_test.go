package db_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"weir/internal/db"
	"weir/internal/require"
	"weir/lab/dbtest"
)

const schema = `-- A table of everything.
CREATE TABLE thing (
	id {{id}},
	name {{text}} NOT NULL UNIQUE,
	n BIGINT NOT NULL DEFAULT 0,
	up BOOLEAN NOT NULL DEFAULT FALSE,
	rate DOUBLE PRECISION NOT NULL DEFAULT 0,
	raw {{blob}},
	at BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE pair (a BIGINT NOT NULL, b BIGINT NOT NULL, PRIMARY KEY (a, b)) {{keyed}};
CREATE INDEX thing_up ON thing (n) WHERE up;
`

func files() fstest.MapFS { return fstest.MapFS{"001_things.sql": {Data: []byte(schema)}} }

func prepared(t *testing.T, open func() *db.DB) *db.DB {
	t.Helper()
	d := open()
	require.NoError(t, d.Migrate(t.Context(), "things", files()))
	return d
}

func count(t *testing.T, d *db.DB) (n int) {
	t.Helper()
	require.NoError(t, d.Read(t.Context(), func(x *db.Tx) error { return x.Row("SELECT count(*) FROM thing").Scan(&n) }))
	return n
}

func insert(name string) func(*db.Tx) error {
	return func(x *db.Tx) error {
		_, err := x.Exec("INSERT INTO thing (name) VALUES (?)", name)
		return err
	}
}

// Values of all types are read back as they were written.
func TestValues(t *testing.T) {
	type word string
	dbtest.Each(t, func(t *testing.T, open func() *db.DB) {
		d := prepared(t, open)
		at := time.Date(2026, 11, 22, 1, 2, 3, 456789, time.UTC)
		err := d.Write(t.Context(), func(x *db.Tx) error {
			var id int64
			return errors.Join(
				x.Row("INSERT INTO thing (name, n, up, rate, raw, at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id", word("a?'é"), 1<<60, true, 0.25,
					[]byte{0, 1, 255}, at).Scan(&id),
				insert("b")(x))
		})
		require.NoError(t, err)
		err = d.Read(t.Context(), func(x *db.Tx) error {
			var name word
			var n, sum int64
			var up bool
			var rate float64
			var raw []byte
			var got, never time.Time
			if err := x.Row("SELECT name, n, up, rate, raw, at FROM thing WHERE at = ? AND up", at).Scan(&name, &n, &up, &rate, &raw,
				db.When(&got)); err != nil {
				return err
			}
			if name != "a?'é" || n != 1<<60 || !up || rate != 0.25 || string(raw) != "\x00\x01\xff" || !got.Equal(at) {
				t.Errorf("read %q %d %v %v %v %v", name, n, up, rate, raw, got)
			}
			if err := x.Row("SELECT CAST(sum(n) AS BIGINT), min(at) FROM thing").Scan(&sum, db.When(&never)); err != nil {
				return err
			}
			if sum != 1<<60 || !never.IsZero() {
				t.Errorf("sum %d, no time %v", sum, never)
			}
			names, err := db.Column[string](x, "SELECT name FROM thing WHERE name {{in}} ORDER BY name", []string{"b", "a?'é", "<c>"})
			if err != nil || len(names) != 2 || names[1] != "b" {
				t.Errorf("names in a list: %q, %v", names, err)
			}
			ids, err := db.Column[int64](x, "SELECT id FROM thing WHERE id {{in}} AND name <> '?'", []int64{1, 2, 77})
			if err != nil || len(ids) != 2 {
				t.Errorf("ids in a list: %d, %v", ids, err)
			}
			none, err := db.Column[int64](x, "SELECT id FROM thing WHERE id {{in}}", []int64(nil))
			if err != nil || len(none) != 0 {
				t.Errorf("ids in an empty list: %d, %v", none, err)
			}
			if err := x.Row("SELECT id FROM thing WHERE name = 'nobody'").Scan(&n); !errors.Is(err, db.ErrNone) {
				t.Errorf("no row: %v", err)
			}
			return nil
		})
		require.NoError(t, err)
	})
}

// A function that fails leaves no changes, regardless of the kind of failure; the functions
// committed together with it do.
func TestWriteAllOrNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open func() *db.DB) {
		d := prepared(t, open)
		refuse := errors.New("no")
		if err := d.Write(t.Context(), func(x *db.Tx) error { return errors.Join(insert("a")(x), refuse) }); !errors.Is(err, refuse) {
			t.Errorf("f's own error: %v", err)
		}
		err := d.Write(t.Context(), func(x *db.Tx) error {
			return errors.Join(insert("b")(x), insert("b")(x))
		})
		if !errors.Is(err, db.ErrExists) {
			t.Errorf("a name twice: %v", err)
		}
		err = d.Write(t.Context(), func(x *db.Tx) error { // it does not look at errors
			_ = insert("c")(x)
			_ = insert("c")(x)
			_ = insert("d")(x)
			return nil
		})
		if !errors.Is(err, db.ErrExists) {
			t.Errorf("a name twice, unseen: %v", err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was lost")
				}
			}()
			_ = d.Write(t.Context(), func(x *db.Tx) error { _ = insert("e")(x); panic("oh") })
		}()
		ctx, cancel := context.WithCancel(t.Context())
		err = d.Write(ctx, func(x *db.Tx) error {
			err := insert("f")(x)
			cancel()
			return errors.Join(err, insert("g")(x))
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended in the middle: %v", err)
		}
		require.NoError(t, d.Write(t.Context(), insert("h")))
		if n := count(t, d); n != 1 {
			t.Errorf("%d rows, want the last one's", n)
		}
		if err := d.Read(t.Context(), insert("i")); err == nil {
			t.Error("a reader wrote")
		}
		if n := count(t, d); n != 1 {
			t.Errorf("%d rows after a reader wrote", n)
		}
	})
}

// Rows that were left open do no harm, but no other statement runs at the same time.
func TestRowsLeftOpen(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open func() *db.DB) {
		d := prepared(t, open)
		for _, do := range []func(context.Context, func(*db.Tx) error) error{d.Write, d.Read} {
			err := do(t.Context(), func(x *db.Tx) error {
				_, err := x.Query("SELECT 1 UNION SELECT 2")
				return err
			})
			if err != nil {
				t.Error(err)
			}
			err = do(t.Context(), func(x *db.Tx) error {
				_, _ = x.Query("SELECT 1 UNION SELECT 2")
				_, err := x.Exec("SELECT 3")
				return err
			})
			if err == nil || !strings.Contains(err.Error(), "read to their end") {
				t.Errorf("a statement beside rows: %v", err)
			}
		}
		if err := d.Write(t.Context(), insert("a")); err != nil {
			t.Error(err)
		}
	})
}

func numbers(from, to int) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		row := make([]any, 2)
		for i := from; i < to; i++ {
			row[0], row[1] = fmt.Sprint("n", i), i
			if !yield(row) {
				return
			}
		}
	}
}

func TestBulkAndMany(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open func() *db.DB) {
		d := prepared(t, open)
		for _, n := range []int{0, 1, 49, 50, 1234} {
			err := d.Write(t.Context(), func(x *db.Tx) error {
				if _, err := x.Exec("DELETE FROM thing"); err != nil {
					return err
				}
				got, err := x.Bulk("thing", []string{"name", "n"}, numbers(0, n))
				if err != nil || got != int64(n) {
					return fmt.Errorf("%d inserted: %w", got, err)
				}
				got, err = x.Many("UPDATE thing SET n = n + 1 WHERE name = ? AND n = ?", numbers(0, n+5))
				if err != nil || got != int64(n) {
					return fmt.Errorf("%d changed: %w", got, err)
				}
				return nil
			})
			if err != nil {
				t.Fatal(n, err)
			}
			if got := count(t, d); got != n {
				t.Errorf("%d rows, want %d", got, n)
			}
		}
		err := d.Write(t.Context(), func(x *db.Tx) error {
			_, err := x.Bulk("thing", []string{"name", "n"}, numbers(1000, 2000))
			return err
		})
		if !errors.Is(err, db.ErrExists) {
			t.Errorf("rows that are there: %v", err)
		}
		err = d.Write(t.Context(), func(x *db.Tx) error {
			_, err := x.Many("INSERT INTO thing (name, n) VALUES (?, ?)", numbers(1000, 3000))
			return err
		})
		if !errors.Is(err, db.ErrExists) || count(t, d) != 1234 {
			t.Errorf("rows that are there, one by one: %v, %d rows", err, count(t, d))
		}
	})
}

// A hundred goroutines that write and read at once wait for each other: no goroutine gets a lock
// error, and every number is given once.
func TestManyWriters(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open func() *db.DB) {
		d := prepared(t, open)
		require.NoError(t, d.Write(t.Context(), insert("counter")))
		var all sync.WaitGroup
		for g := range 100 {
			all.Go(func() {
				for i := range 5 {
					err := d.Write(t.Context(), func(x *db.Tx) error {
						var n int
						if err := x.Row("SELECT n FROM thing WHERE name = 'counter' {{lock}}").Scan(&n); err != nil {
							return err
						}
						if _, err := x.Exec("UPDATE thing SET n = ? WHERE name = 'counter'", n+1); err != nil {
							return err
						}
						return insert(fmt.Sprint(g, "-", i))(x)
					})
					if err != nil {
						t.Errorf("write: %v", err)
					}
					var n, rows int
					err = d.Read(t.Context(), func(x *db.Tx) error {
						return errors.Join(x.Row("SELECT n FROM thing WHERE name = 'counter'").Scan(&n), x.Row("SELECT count(*) FROM thing").Scan(&rows))
					})
					if err != nil || rows != n+1 {
						t.Errorf("read: %d counted, %d rows: %v", n, rows, err)
					}
				}
			})
		}
		all.Wait()
		if n := count(t, d); n != 501 {
			t.Errorf("%d rows, want 501", n)
		}
	})
}

func TestMigrate(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open func() *db.DB) {
		d := prepared(t, open)
		fs := files()
		fs["002_more.sql"] = &fstest.MapFile{Data: []byte("ALTER TABLE thing ADD COLUMN more BIGINT NOT NULL DEFAULT 7")}
		bad := fstest.MapFS{"001_things.sql": fs["001_things.sql"], "002_more.sql": {Data: []byte("CREATE TABLE t (a BIGINT);\nCREATE NONSENSE")}}
		if err := d.Migrate(t.Context(), "things", bad); err == nil || !strings.Contains(err.Error(), "002_more.sql") {
			t.Errorf("nonsense: %v", err)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := d.Migrate(t.Context(), "things", fs); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if err := d.Migrate(t.Context(), "things", files()); err == nil || !strings.Contains(err.Error(), "newer version") {
			t.Errorf("an older program: %v", err)
		}
		fs["001_things.sql"] = &fstest.MapFile{Data: []byte(schema + "\n")}
		if err := d.Migrate(t.Context(), "things", fs); err == nil || !strings.Contains(err.Error(), "of a version before the first release") {
			t.Errorf("a changed file: %v", err)
		}
	})
}

// The file belongs to one writer, and processes of the same user may read it. Other users have no
// access to it.
func TestOneProcessWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "odd name?#%41.db")
	d, err := db.Open(t.Context(), path, db.Options{})
	require.NoError(t, err)
	require.NoError(t, errors.Join(d.Migrate(t.Context(), "things", files()), d.Write(t.Context(), insert("a"))))
	if _, err := db.Open(t.Context(), path, db.Options{}); !errors.Is(err, db.ErrTaken) ||
		!strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("opened twice: %v", err)
	}
	r, err := db.Open(t.Context(), path, db.Options{ReadOnly: true})
	require.NoError(t, err)
	if n := count(t, r); n != 1 {
		t.Errorf("%d rows seen by a reader", n)
	}
	if err := r.Write(t.Context(), insert("b")); err == nil {
		t.Error("a reader wrote")
	}
	for _, name := range []string{"", "-wal", "-shm"} {
		if info, err := os.Stat(path + name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%q: %v, %v", name, info, err)
		}
	}
	if err := errors.Join(r.Close(), d.Close(), d.Close()); err != nil {
		t.Error(err)
	}
	if err := d.Write(t.Context(), insert("b")); !errors.Is(err, db.ErrClosed) {
		t.Errorf("written to after the end: %v", err)
	}
	if err := d.Read(t.Context(), insert("b")); !errors.Is(err, db.ErrClosed) {
		t.Errorf("read after the end: %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	for url, want := range map[string]string{
		"mysql://root@localhost/x": "no such kind",
		"":                         "name a file",
		"sqlite::memory:":          "name a file",
		"/nonexistent/x.db":        "no such file",
		"postgres://u:geheim@127.0.0.1:1/x?connect_timeout=2": "cannot serve now",
		"postgres://u:geheim@h:port/x":                        "cannot be read",
		"postgres://127.0.0.1:1/x?password=geheim":            "cannot serve now",
	} {
		_, err := db.Open(t.Context(), url, db.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", url, err)
		}
	}
	notOne := filepath.Join(t.TempDir(), "x.db")
	require.NoError(t, os.WriteFile(notOne, []byte(strings.Repeat("this is no database\n", 500)), 0o600))
	if _, err := db.Open(t.Context(), notOne, db.Options{}); err == nil || !strings.Contains(err.Error(), "not a database") {
		t.Errorf("another file: %v", err)
	}
}

// No address in an error contains a password, even if the address is invalid.
func TestAddressesHaveNoPasswords(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"postgres://u:hush@h/x", "postgres://h/x?password=hush", "mysql://u:hush@h/x", "postgresql://u:hush@[::1",
		"mysql://u:hush@[::1", "http://u:hush@h"} {
		if got := db.Public(address); strings.Contains(got, "hush") {
			t.Errorf("%s: %s", address, got)
		}
	}
	for _, address := range []string{"weir.db", "sqlite:/var/x y%.db", "/a:b.db"} {
		if got := db.Public(address); got != address {
			t.Errorf("%s: %s", address, got)
		}
	}
}
