package db_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"weir/internal/db"
	"weir/internal/require"
	"weir/lab/dbtest"
)

// All rows arrive in a database of the other kind, and of the same kind. New ids continue after the
// last id, also after rows that were removed.
func TestCopy(t *testing.T) {
	t.Parallel()
	for _, kind := range []func(testing.TB) string{dbtest.File, dbtest.Server} {
		dbtest.Each(t, func(t *testing.T, open func() *db.DB) {
			at := kind(t)
			t.Run("to "+at[:strings.IndexByte(at, ':')], func(t *testing.T) {
				from, to := prepared(t, open), prepared(t, func() *db.DB { return opened(t, at) })
				must(t, from.Write(t.Context(), fillThings))
				must(t, to.Write(t.Context(), insert("is in the way")))
				var tables []string
				all, err := db.Copy(t.Context(), from, to, func(table string) { tables = append(tables, table) })
				if err != nil || !slices.Equal(all, []db.Copied{{Table: "pair", Rows: 200}, {Table: "thing", Rows: 7}}) ||
					!slices.Equal(tables, []string{"pair", "thing"}) {
					t.Fatalf("%v %v, %v", all, tables, err)
				}
				if a, b := things(t, from), things(t, to); a != b {
					t.Errorf("%s\nis not\n%s", b, a)
				}
				for _, d := range []*db.DB{from, to} { // the 8th thing was removed, the 9th is next
					var id int64
					must(t, d.Write(t.Context(), func(x *db.Tx) error { return x.Row("INSERT INTO thing (name) VALUES ('new') RETURNING id").Scan(&id) }))
					if id != 9 {
						t.Errorf("%s: the next number is %d", d.Dialect(), id)
					}
					must(t, d.Write(t.Context(), func(x *db.Tx) error { return second(x.Exec("DELETE FROM thing")) }))
				}
				if all, err = db.Copy(t.Context(), from, to, nil); err != nil || all[1].Rows != 0 {
					t.Errorf("nothing: %v, %v", all, err)
				}
			})
		})
	}
}

func opened(t *testing.T, address string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), address, db.Options{})
	must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// Copy refuses tables that it cannot copy unchanged, and then makes no changes.
func TestCopyRefuses(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, open func() *db.DB) {
		to := prepared(t, open)
		must(t, to.Write(t.Context(), insert("was there")))
		from := opened(t, dbtest.File(t))
		must(t, from.Migrate(t.Context(), "other", files()))
		if _, err := db.Copy(t.Context(), from, to, nil); err == nil || !strings.Contains(err.Error(), "do not have the same tables") {
			t.Errorf("of another program: %v", err)
		}
		from = prepared(t, func() *db.DB { return opened(t, dbtest.File(t)) })
		must(t, from.Write(t.Context(), func(x *db.Tx) error { // SQLite keeps anything
			return errors.Join(insert("fits")(x), second(x.Exec("INSERT INTO thing (name, n) VALUES ('does not', 'a word')")))
		}))
		_, err := db.Copy(t.Context(), from, to, nil)
		if to.Dialect() == db.PostgreSQL && (err == nil || things(t, to) != "1 was there 0 false 0  0\n") {
			t.Errorf("a word where a number is to be: %v\n%s", err, things(t, to))
		}
	})
}

func second(_ int64, err error) error { return err }

func must(t *testing.T, err error) {
	t.Helper()
	require.NoError(t, err)
}

func fillThings(x *db.Tx) error {
	var errs []error
	for i, v := range [][]any{
		{"a", 1, true, 0.1, []byte{0, 1, 255}, math.MaxInt64}, {"", math.MinInt64, false, 1e300, nil, 0},
		{"ä\t'\"\\\n", 0, true, -1.5, []byte{}, 1},
		{strings.Repeat("x", 100_000), -1, false, 2.0, make([]byte, 70_000), 2}, {"B", 5, true, 1.0 / 3, nil, 3}, {"Z", 6, true, 5e-324, nil, 4},
		{"z", 7, true, 7.0, nil, 5}, {"gone", 0, false, 0.0, nil, 0},
	} {
		_, err := x.Exec("INSERT INTO thing (name, n, up, rate, raw, at) VALUES (?, ?, ?, ?, ?, ?)", v...)
		errs = append(errs, err)
		for j := range 25 {
			_, err := x.Exec("INSERT INTO pair (a, b) VALUES (?, ?)", j, i)
			errs = append(errs, err)
		}
	}
	_, err := x.Exec("DELETE FROM thing WHERE name = 'gone'")
	return errors.Join(append(errs, err)...)
}

// things returns all rows as text.
func things(t *testing.T, d *db.DB) string {
	t.Helper()
	var b strings.Builder
	must(t, d.Read(t.Context(), func(x *db.Tx) error {
		b.Reset()
		_, err := db.All(x, func(rows *db.Rows) (v struct{}, err error) {
			var id, n, at int64
			var name string
			var up bool
			var rate float64
			var raw []byte
			err = rows.Scan(&id, &name, &n, &up, &rate, &raw, &at)
			fmt.Fprintf(&b, "%d %s %d %t %g %x %d\n", id, name, n, up, rate, raw, at)
			return v, err
		}, "SELECT id, name, n, up, rate, raw, at FROM thing ORDER BY id")
		return err
	}))
	return b.String()
}
