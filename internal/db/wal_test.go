package db_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"weir/internal/db"
	"weir/internal/require"
	"weir/internal/tier"
)

// The log does not grow without limit, even if there is always a reader.
func TestLogStaysSmall(t *testing.T) {
	tier.Slow(t, "writes for seconds")
	path := filepath.Join(t.TempDir(), "x.db")
	d, err := db.Open(t.Context(), path, db.Options{})
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, d.Migrate(t.Context(), "things", files()))
	big := make([]byte, 50_000)
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		all.Go(func() {
			for {
				err := d.Read(t.Context(), func(x *db.Tx) error {
					var n int
					return errors.Join(x.Row("SELECT count(*) FROM thing").Scan(&n),
						x.Row("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1000) SELECT count(*) FROM c").Scan(&n))
				})
				if err != nil {
					t.Error(err)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	var most int64
	for i := range 50 {
		err := d.Write(t.Context(), func(x *db.Tx) error {
			if _, err := x.Exec("DELETE FROM thing"); err != nil {
				return err
			}
			for j := range 100 {
				if _, err := x.Exec("INSERT INTO thing (name, raw) VALUES (?, ?)", fmt.Sprint(i, "-", j), big); err != nil {
					return err
				}
			}
			return nil
		})
		info, statErr := os.Stat(path + "-wal")
		require.NoError(t, errors.Join(err, statErr))
		most = max(most, info.Size())
	}
	close(stop)
	all.Wait()
	t.Logf("the log had at most %d MB", most>>20)
	if most > 160<<20 {
		t.Error("it grows")
	}
}
