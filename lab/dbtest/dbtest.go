// Package dbtest runs tests on both kinds of database: SQLite, and a real
// PostgreSQL that it starts once for the tests of a package.
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"weir/internal/db"
	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

// Each runs f as two subtests, "SQLite" and "PostgreSQL". The database is empty and f's own; each
// call of open opens it, and so after a Close once more: in PostgreSQL also twice at a time. The
// databases that open returned are closed when f's test ends. Without PostgreSQL on this machine
// that subtest is skipped.
func Each(t *testing.T, f func(t *testing.T, open func() *db.DB)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) { f(t, opener(t, File(t))) })
	t.Run("PostgreSQL", func(t *testing.T) { f(t, opener(t, Server(t))) })
}

// EachBench works like Each, for benchmarks.
func EachBench(b *testing.B, f func(b *testing.B, open func() *db.DB)) {
	b.Helper()
	b.Run("SQLite", func(b *testing.B) { f(b, opener(b, File(b))) })
	b.Run("PostgreSQL", func(b *testing.B) { f(b, opener(b, Server(b))) })
}

// File returns the address of a new SQLite database, removed when t ends.
func File(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "test.db")
}

// Server returns the address of a new, empty database of the test binary's PostgreSQL, which the
// first call starts. It skips t if PostgreSQL is not installed.
func Server(t testing.TB) string {
	t.Helper()
	labtest.Need(t, "postgres", "initdb", "pg_isready")
	s, err := server()
	require.NoError(t, err)
	name := fmt.Sprintf("test%d", made.Add(1))
	c, err := pgx.Connect(context.Background(), s.URL)
	require.NoError(t, err)
	_, err = c.Exec(context.Background(), "CREATE DATABASE "+name)
	if err = errors.Join(err, c.Close(context.Background())); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	u.Path = "/" + name
	return u.String()
}

// server starts PostgreSQL once. It ends, and its files go, with the process: a test cannot detect
// that it is the last.
var server = sync.OnceValues(func() (*lab.System, error) { //nolint:gochecknoglobals // see above
	return lab.PostgreSQLConfig{Careless: true}.Start(context.Background())
})

var made atomic.Int64 //nolint:gochecknoglobals // databases of the one server

func opener(t testing.TB, url string) func() *db.DB {
	return func() *db.DB {
		t.Helper()
		d, err := db.Open(t.Context(), url, db.Options{})
		require.NoError(t, err)
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Errorf("close %s: %v", d, err)
			}
		})
		return d
	}
}
