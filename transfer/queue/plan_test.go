package queue

import (
	"strings"
	"testing"

	"weir/internal/db"
	"weir/internal/require"
	"weir/lab/dbtest"
)

// SQLite uses a partial index only for a query that repeats its condition word for word: otherwise
// one page of failures would read a million files.
func TestPlans(t *testing.T) {
	t.Parallel()
	d, err := db.Open(t.Context(), dbtest.File(t), db.Options{})
	require.NoError(t, err)
	w := newWorld(t, d, Options{})
	defer func() { w.must(d.Close()) }()
	for query, index := range map[string]string{
		"SELECT id FROM item WHERE " + indexed + " AND state = 6 AND id > 1 AND id < 9 ORDER BY id LIMIT 5": "item_rest",
		"SELECT id FROM item WHERE lane = 1 AND state = 1 ORDER BY id LIMIT 5":                              "item_ready",
		"SELECT id FROM item WHERE state = 2 AND due <= 5 ORDER BY due LIMIT 5":                             "item_due",
		"SELECT id FROM item WHERE id > 1 AND id <= 9 AND state IN (1, 2) ORDER BY id LIMIT 5":              "INTEGER PRIMARY KEY",
		"SELECT id FROM request WHERE ended = 0 AND dest = 'C' AND stop = '' AND ready_n > 0":               "request_ready",
		destinations: "request_ready",
		"SELECT id FROM request WHERE work <> '' AND id > 3 ORDER BY id LIMIT 1":       "request_work",
		"SELECT item FROM lease WHERE until <= 5 ORDER BY until LIMIT 5":               "lease_until",
		"SELECT item FROM attempt WHERE ended > 5 ORDER BY ended, item, epoch LIMIT 5": "attempt_ended",
	} {
		var plan []string
		w.must(d.Read(t.Context(), func(tx *db.Tx) (err error) {
			plan, err = db.All(tx, func(rows *db.Rows) (s string, err error) {
				var a, b, c int64
				return s, rows.Scan(&a, &b, &c, &s)
			}, "EXPLAIN QUERY PLAN "+query)
			return err
		}))
		if !strings.Contains(strings.Join(plan, "; "), index) {
			t.Errorf("%s: %s", query, plan)
		}
	}
}
