package coordinator

import (
	"testing"
	"time"

	"weir/lab/dbtest"
	"weir/transfer"
)

// The coordinator keeps samples of its own host and process in the same way as samples of agents,
// on both databases.
func TestSamplesOfThisHost(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]func(testing.TB) string{"SQLite": dbtest.File, "PostgreSQL": dbtest.Server} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			h := start(t, Config{DB: address(t)})
			var list []transfer.Sample
			until(t, "two samples of the coordinator", func() bool {
				var err error
				if list, err = h.Client.Samples(t.Context(), transfer.CoordinatorHost, begin, 0); err != nil {
					t.Fatal(err)
				}
				return len(list) >= 2
			})
			for _, s := range list {
				if s.Cores < 1 || s.Total <= 0 || s.OwnMemory <= 0 || s.Seconds <= 0 || s.Time.Before(begin) || s.Time.After(time.Now()) {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}
