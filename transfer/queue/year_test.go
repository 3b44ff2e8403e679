package queue

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/internal/db"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/dbtest"
	"weir/lab/labtest"
	"weir/transfer"
)

// For a year, files are moved at a steady rate, and requests are kept for a month: the tables have
// as many rows, and the database as many bytes, at the end of the year as after two months, while
// an old request stays open. WEIR_YEAR_FILES=10000000 uses more files.
func TestYear(t *testing.T) {
	tier.Slow(t, "moves the files of a year")
	t.Parallel()
	files := 40_000
	if n, err := strconv.Atoi(os.Getenv("WEIR_YEAR_FILES")); err == nil {
		files = n
	}
	for name, address := range map[string]func(testing.TB) string{"SQLite": dbtest.File, "PostgreSQL": dbtest.Server} {
		t.Run(name, func(t *testing.T) {
			at := address(t)
			d, err := db.Open(t.Context(), at, db.Options{})
			require.NoError(t, err)
			y := year{world: newWorld(t, d, Options{Patience: 1000 * 24 * time.Hour}), address: at, part: files / yearParts}
			defer func() { y.must(d.Close()) }()
			y.begin()
			for n := range yearParts {
				y.fiveDays(n)
			}
			y.check(t)
		})
	}
}

const (
	yearKeep  = 30 * 24 * time.Hour // time for which requests are kept
	yearParts = 73                  // of five days each
	yearFirst = 12                  // parts after which nothing grows
)

// A year is a simulated year.
type year struct {
	*world
	address string
	part    int // files in each part of the year
	open    int64
	rows    []map[string]int64 // after each part except the first parts, by table
	bytes   []int64
	moved   int64
	removal []time.Duration // of the transactions that remove requests
}

// begin adds sites, a dataset, and a request that stays open.
func (y *year) begin() {
	for _, site := range []string{"A", "B", "C"} {
		y.site(site, true, -1)
	}
	y.site("down", false, -1)
	y.dataset("/d", max(1, y.part/2), "A")
	y.dataset("/waits", 3, "down")
	y.open = y.submit(transfer.Submission{Dataset: "/waits", To: "C"}).ID
}

// fiveDays moves the files of a part of the year: half of them are a dataset, half of them jobs of ten files. A file in a hundred fails.
func (y *year) fiveDays(n int) {
	y.t.Helper()
	y.submit(transfer.Submission{Dataset: "/d", To: "B", Key: fmt.Sprint("part ", n)})
	for job := range max(1, y.part/20) {
		p := JobPart{To: "C", Tries: 1}
		for k := range 10 {
			path := fmt.Sprintf("%d/%d/%d", n, job, k)
			p.Pairs = append(p.Pairs, Pair{Number: k, Size: 1000, Adler: "04000401", Dest: "https://c.example.org/" + path, Path: path,
				Sources: []PairSource{{Site: "A", Path: path, URL: "https://a.example.org/" + path}}, Params: `{"activity":"default"}`})
		}
		y.must(y.SubmitJob(y.ctx, Job{ID: fmt.Sprintf("job %d/%d", n, job), By: "rucio", Params: "{}"}, []JobPart{p}))
	}
	for _, dest := range []string{"B", "C"} {
		for {
			leases := y.lease(dest, 1000)
			if len(leases) == 0 {
				break
			}
			var outcomes []transfer.Outcome
			for i, l := range leases {
				o := success(l)
				if i%100 == 50 && l.Job != "" {
					o = failure(l, transfer.Permanent, "no such file")
				}
				o.Begin, o.End = y.clock(), y.clock().Add(time.Second)
				outcomes = append(outcomes, o)
			}
			y.report(outcomes...)
			y.moved += int64(len(outcomes))
		}
	}
	y.pass(5 * 24 * time.Hour)
	for more := true; more; {
		begin := time.Now()
		var err error
		more, err = y.Forget(y.ctx, y.clock().Add(-yearKeep))
		y.must(err)
		y.removal = append(y.removal, time.Since(begin))
	}
	y.vacuum()
	if n >= yearFirst {
		y.measure()
	}
}

// vacuum does in this year the vacuuming that PostgreSQL does by itself within minutes.
func (y *year) vacuum() {
	if y.db.Dialect() != db.PostgreSQL {
		return
	}
	c, err := pgx.Connect(y.ctx, y.address)
	y.must(err)
	_, err = c.Exec(y.ctx, "VACUUM (ANALYZE)")
	y.must(err)
	y.must(c.Close(context.WithoutCancel(y.ctx)))
}

func (y *year) measure() {
	y.t.Helper()
	rows := map[string]int64{}
	var bytes int64
	y.must(y.db.Read(y.ctx, func(tx *db.Tx) error {
		tables, err := tx.Tables()
		for _, table := range tables {
			if err != nil {
				return err
			}
			var n int64
			err = tx.Row(`SELECT COUNT(*) FROM "` + table + `"`).Scan(&n)
			rows[table] = n
		}
		if err != nil {
			return err
		}
		query := "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
		if tx.Dialect() == db.PostgreSQL {
			query = "SELECT pg_database_size(current_database())"
		}
		return tx.Row(query).Scan(&bytes)
	}))
	y.rows, y.bytes = append(y.rows, rows), append(y.bytes, bytes)
}

func (y *year) check(t *testing.T) {
	t.Helper()
	for table, first := range y.rows[0] {
		for _, rows := range y.rows[1:] {
			if n := rows[table]; table != "event" && n > first+first/10+50 {
				t.Errorf("table %s has %d rows after two months, and %d later", table, first, n)
				break
			}
		}
	}
	if n := y.rows[0]["attempt"]; n < y.moved*28/365 {
		t.Errorf("%d attempts are kept, of %d in a year", n, y.moved)
	}
	if most := slices.Max(y.bytes); most > y.bytes[0]*5/4 {
		t.Errorf("the database has %d bytes after two months, and %d later", y.bytes[0], most)
	}
	if r := y.get(y.open); r.Status != transfer.Running || r.Count.Files != 3 {
		t.Errorf("the oldest request is %+v", r)
	}
	y.audit()
	slices.Sort(y.removal)
	t.Logf("%d files in a year, %d rows of files kept, %.0f MB after two months, %.0f MB at the end; a transaction that removes takes %v "+
		"(median), %v (p99); memory at most %d MB", y.moved, y.rows[0]["item"], float64(y.bytes[0])/1e6, float64(y.bytes[len(y.bytes)-1])/1e6,
		percentile(y.removal, 50), percentile(y.removal, 99), labtest.PeakMemory(t))
}
