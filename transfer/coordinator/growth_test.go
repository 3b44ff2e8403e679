package coordinator

import (
	"cmp"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/db"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/lab/dbtest"
	"weir/lab/labtest"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/notify"
	"weir/transfer/text"
	"weir/transfer/transfertest"
)

// After a coordinator has moved many files, the queries of users, of agents and of the coordinator
// itself use indexes, and old requests are shown as fast as new requests.
// WEIR_GROWTH_FILES=10000000 compares the times and the memory with the promised limits.
func TestGrowth(t *testing.T) {
	tier.Full(t, "a hundred thousand files")
	tier.Slow(t, "makes a hundred thousand rows")
	files, long := 50_000, false
	if n, err := strconv.Atoi(os.Getenv("WEIR_GROWTH_FILES")); err == nil {
		files, long = n, true
	}
	each(t, func(t *testing.T, conf Config) {
		var plans dbtest.Plans
		conf.Plain, conf.JobArea, conf.Keep, conf.KeepEndpoints = true, tpc.Loopback, 364*24*time.Hour, time.Hour
		h := start(t, conf)
		a, b := h.FakeAgent("A"), h.FakeAgent("B")
		a.Register("https://127.0.0.1:1/")
		b.Register("")
		p := past{h: h, files: files}
		p.write()
		h.End()
		h.conf.seen = plans.Add
		h.Begin()
		a.Client, b.Client = h.As("agent A", access.AgentOf+"A"), h.As("agent B", access.AgentOf+"B")
		a.Session, b.Session = "two", "two"
		a.Register("https://127.0.0.1:1/")
		b.Register("")
		p.work(a, b)
		shown := p.look()
		t.Logf("%d files of %d requests, %.0f bytes a file: a request is shown within %v (median), %v (p99), %v (longest); memory at most %d MB",
			files, p.requests, float64(p.size())/float64(files), shown[len(shown)/2], shown[len(shown)*99/100], shown[len(shown)-1],
			labtest.PeakMemory(t))
		if long && (shown[len(shown)*99/100] > 200*time.Millisecond || labtest.PeakMemory(t) > 500) {
			t.Error("a request is not shown within 200 ms, or more than 500 MB of memory are used")
		}
		p.prune()

		// Tables and indexes with a row for each site, open file or token, the latest events, or
		// the messages that wait for the broker.
		small := []string{"site", "lease", "event", "event_last", "counter", "link", "hold", "ban", "setting", "token", "delegation", "leftover",
			"notified", "file_change", "thinned", "unused",
			"hop", "next", "scan", "schema_files", "bearer", "bearer_job", "item_due", "request_live", "request_open",
			"request_ready", "request_work", "request_expires", "tape_due", "notification_due", "bearer_due", "dataset", "presence",
			"bearer_job_job", "sample_at", "notification_made", "dataset_name_key", "sqlite_autoindex_dataset_1"}
		// Indexes with many rows of the same value, which lists use.
		wide := []string{"request_dataset", "request_by", "request_to", "request_status", "attempt_ended",
			"job_state", "job_ended", "job_by", "job_user", "job_vo", "job_from", "job_to"}
		scans, err := plans.Scans(h.db, small, wide, func(query string) bool {
			return strings.Contains(query, "FROM request WHERE TRUE ") || // the latest requests
				strings.HasPrefix(query, "SELECT COALESCE(MAX(") || strings.HasPrefix(query, "SELECT COUNT(*) FROM ") // the end of an index; this test
		})
		require.NoError(t, err)
		for query, step := range scans {
			t.Errorf("%s\n\tfor %s", step, query)
		}
	})
}

// A past is a set of requests that have ended in the course of a year.
type past struct {
	h               *service
	files, requests int
	first, last     int64 // ids of requests
}

const (
	pastFiles   = 10   // files of a request
	pastSamples = 3000 // samples of a site's host, at each of three times
	count       = "WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST(? AS BIGINT)) "
	pastYear    = 365 * 24 * time.Hour // the period in which the requests were made
)

// write inserts the rows of the requests, as if they had been carried out. Two of three requests
// are jobs. One file in a hundred has failed.
func (p *past) write() {
	p.h.T.Helper()
	p.requests = p.files / pastFiles
	begin := time.Now().Add(-pastYear)
	const most = 20_000 // requests in one transaction
	for done := 0; done < p.requests; done += most {
		n := min(most, p.requests-done)
		err := p.h.db.Write(p.h.T.Context(), func(tx *db.Tx) error {
			var before int64
			if err := tx.Row("SELECT COALESCE(MAX(id), 0) FROM request").Scan(&before); err != nil {
				return err
			}
			each := pastYear.Nanoseconds() / int64(p.requests)
			at := begin.UnixNano() + int64(done)*each
			for _, q := range []struct {
				text string
				args []any
			}{
				{count + `INSERT INTO request (made_by, key, dataset, block, dest, sources, mode, share, priority, approve, expires, max_tries,
					unchecked, comment, asked_files, asked_bytes, status, decided, reason, made, began, ended, stop, work, place, at_name, resolved,
					job, files_n, bytes_n, ready_n, resting_n, leased_n, done_n, skipped_n, failed_n, dropped_n, there_bytes, attempts_n)
					SELECT 'user' || CAST(i % 50 AS TEXT), CASE WHEN i % 3 = 0 THEN 'key' || CAST(i + CAST(? AS BIGINT) AS TEXT) ELSE '' END,
					CASE WHEN i % 3 = 0 THEN '/data/run' || CAST(i % 100 AS TEXT) ELSE 'job ' || CAST(i + CAST(? AS BIGINT) AS TEXT) END,
					'', CASE WHEN i % 2 = 0 THEN 'A' ELSE 'B' END, '', '', 'default', 0, TRUE, 0, 5, FALSE, '', 10, 10000000,
					CASE WHEN i % 10 = 0 THEN 'partial' ELSE 'completed' END, '', '', i * CAST(? AS BIGINT) + CAST(? AS BIGINT),
					i * CAST(? AS BIGINT) + CAST(? AS BIGINT), i * CAST(? AS BIGINT) + CAST(? AS BIGINT), '', '', 0, '', TRUE,
					CASE WHEN i % 3 = 0 THEN '' ELSE 'job' || CAST(i + CAST(? AS BIGINT) AS TEXT) END, 10, 10000000, 0, 0, 0,
					CASE WHEN i % 10 = 0 THEN 9 ELSE 10 END, 0, CASE WHEN i % 10 = 0 THEN 1 ELSE 0 END, 0, 10000000, 10 FROM n`,
					[]any{n, before, before, each, at, each, at, each, at, before}},
				{"INSERT INTO job (id, made_by, made, params, vo, state, ended, user_name, credential, source, dest) SELECT job, made_by, made, " +
					`'{"vo_name":"atlas","user_dn":"CN=ada","source_se":"https://a.example.org","dest_se":"https://b.example.org"}', ` +
					"'atlas', CASE WHEN failed_n > 0 THEN 'FINISHEDDIRTY' ELSE 'FINISHED' END, ended, 'CN=ada', '', 'https://a.example.org', " +
					"'https://b.example.org' FROM request WHERE id > ? AND job <> ''", []any{before}},
				{"INSERT INTO lane (request, sites, ready) SELECT id, 'A', 0 FROM request WHERE id > ?", []any{before}},
				{count + `INSERT INTO item (id, file, name, size, adler, state, lane, epoch, tries, pauses, due, source, mode, fault, reason, ended,
					moved, trail, again) SELECT r.id * 100000000 + n.i, -(r.id * 10 + n.i),
					'/data/run/' || CAST(r.id AS TEXT) || '/file' || CAST(n.i AS TEXT),
					1000000, '04000401', CASE WHEN r.failed_n + n.i = 11 THEN 6 ELSE 4 END, 0, 1, 1, 0, 0, 'A', 'third', '',
					CASE WHEN r.failed_n + n.i = 11 THEN 'no such file' ELSE '' END, r.ended, 1000000, '', FALSE
					FROM request r CROSS JOIN n WHERE r.id > ?`, []any{pastFiles, before}},
				{`INSERT INTO pair (item, number, sources, dest, params, secret) SELECT i.id, i.id % 100000000,
					'[{"site":"A","path":"data' || i.name || '","url":"https://a.example.org:1094/data' || i.name || '"}]',
					'https://b.example.org:1094/data' || i.name, '{"activity":"default","metadata":{"request_id":"d6b6c0c4e5a94d6ca2c8b7d1a3f0"}}', NULL
					FROM item i JOIN request r ON r.id = i.id / 100000000 WHERE i.id > ? AND r.job <> ''`, []any{(before + 1) * 100000000}},
				{`INSERT INTO attempt (item, epoch, late, source, dest, mode, fault, reason, after, size, adler, verified, existed, moved, resumed,
					began, ended, cpu) SELECT id, 1, 0, 'A', 'B', 'third', '', '', 0, size, adler, TRUE, FALSE, size, 0, ended - 1000000000, ended, 0.01
					FROM item WHERE id > ?`, []any{(before + 1) * 100000000}},
				{`INSERT INTO notification (target, id, request, status, body, made, due, tries, problem, ended)
					SELECT 'mail', CAST(id AS TEXT), id, status, '{}', made, made, 1, '', made FROM request WHERE id > ? AND failed_n > 0`, []any{before}},
				{"INSERT INTO bearer_job (bearer, job) SELECT 'rights', job FROM request WHERE id > ? AND job <> '' AND ended > ?",
					[]any{before, time.Now().Add(-48 * time.Hour)}},
			} {
				if _, err := tx.Exec(q.text, q.args...); err != nil {
					return err
				}
			}
			if p.first == 0 {
				p.first = before + 1
			}
			return tx.Row("SELECT MAX(id) FROM request").Scan(&p.last)
		})
		if err != nil {
			p.h.T.Fatal(err)
		}
	}
	for _, age := range []time.Duration{30*24*time.Hour - time.Hour, 30 * time.Hour, time.Hour} { // to be removed, to be thinned, to stay
		for _, site := range []string{"A", "B"} {
			for i := 0; i < pastSamples; i += 1000 {
				var all []transfer.Sample
				for k := range 1000 {
					at := time.Now().Add(time.Duration(i+k)*time.Second - age)
					all = append(all, transfer.Sample{Time: at, Seconds: 1, Cores: 2, CPU: 0.25 + 0.5*float64(k%2), OwnCPU: 0.5, MovedBytes: 1e6})
				}
				if err := p.h.samples.Keep(p.h.T.Context(), site, all); err != nil {
					p.h.T.Fatal(err)
				}
			}
		}
	}
	err := p.h.db.Write(p.h.T.Context(), func(tx *db.Tx) error {
		// The oldest samples become older than their retention time.
		_, err := tx.Exec("UPDATE sample SET at = at - ? WHERE at < ?", (24 * time.Hour).Nanoseconds(), time.Now().Add(-20*24*time.Hour))
		if err != nil || tx.Dialect() == db.SQLite {
			return err // SQLite databases are never analyzed
		}
		_, err = tx.Exec("ANALYZE")
		return err
	})
	if err != nil {
		p.h.T.Fatal(err)
	}
}

// work performs the usual requests of agents and users while the past is in the database.
func (p *past) work(a, b *transfertest.FakeAgent) {
	h, t := p.h, p.h.T
	t.Helper()
	h.Register("/store/now", "A", 8, 1000)
	for key := range 3 { // the first request ends, the second stays open, the third waits for approval
		q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/now", To: "B", Approve: key < 2, Key: strconv.Itoa(key),
			Expires: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		if key > 0 {
			continue
		}
		until(t, "the request ends", func() bool {
			for _, l := range b.Work().Leases {
				if _, err := b.Report(transfertest.Verified(l)); err != nil {
					t.Fatal(err)
				}
			}
			q, err = h.Client.Request(t.Context(), q.ID)
			return err == nil && q.Status.Ended()
		})
	}
	b.WaitWork()
	if _, err := b.Report(); err != nil {
		t.Fatal(err)
	}
	u := h.ftsUser("rucio", access.MaySubmit)
	id := u.submit(bulk(1, 5))
	admin := h.ftsUser("admin", access.MayAdmin)
	for _, by := range []string{"", "&user_dn=user7", "&user_dn=CN=ada", "&vo_name=atlas", "&source_se=https://a.example.org",
		"&dest_se=https://b.example.org", "&dest_se=https://b.example.org&source_se=https://a.example.org&vo_name=cms"} {
		for _, path := range []string{"state_in=FINISHED,FAILED&limit=10", "state_in=FINISHED&time_window=2", "state_in=ACTIVE,FAILED"} {
			var jobs []ftsJob
			if status := admin.ask("GET", "/jobs?"+path+by, "", &jobs); status != http.StatusOK ||
				strings.Contains(path, "limit") && !strings.Contains(by, "cms") && len(jobs) != 10 {
				t.Errorf("%s%s: %d, %d jobs", path, by, status, len(jobs))
			}
		}
	}
	for _, path := range []string{"", "/" + id + "?files=file_state", "/" + id, "/" + id + "/files", "/" + p.job()} {
		if status := u.ask("GET", "/jobs"+path, "", nil); status != http.StatusOK {
			t.Errorf("GET /jobs%s: %d", path, status)
		}
	}
	if status := u.ask("POST", "/jobs/"+id, `{"params":{"priority":4}}`, nil); status != http.StatusOK {
		t.Errorf("a change of the priority: %d", status)
	}
	if status := admin.ask("DELETE", "/jobs/all", "", nil); status != http.StatusOK {
		t.Errorf("a cancellation of all jobs: %d", status)
	}
}

// job returns the id of a job in the middle of the year.
func (p *past) job() string {
	id := (p.first + p.last) / 2
	all, err := db.Select(p.h.T.Context(), p.h.db, db.Value[string],
		"SELECT job FROM request WHERE id >= ? AND id < ? AND job <> '' ORDER BY id LIMIT 1", id, id+10)
	if err != nil || len(all) == 0 {
		p.h.T.Fatal(all, err)
	}
	return all[0]
}

// look sends the requests of users, and returns the times in which single requests were shown, the
// shortest first.
func (p *past) look() (shown []time.Duration) {
	h, ctx := p.h, p.h.T.Context()
	must := func(what string, err error) {
		h.T.Helper()
		if err != nil {
			h.T.Fatalf("%s: %v", what, err)
		}
	}
	for i := range int64(200) {
		id := p.last - (p.last-p.first)*(i*79%200)/205 // the first requests are not kept
		begin := time.Now()
		out, err := text.Fetch(ctx, h.Client, id, true, "", text.MaxRows) // as weir transfer show does
		must("show", err)
		shown = append(shown, time.Since(begin))
		if out.Request.Count.Files != pastFiles || !out.Request.Status.Ended() {
			h.T.Fatalf("%+v", out)
		}
		_, err = h.Client.Explain(ctx, id, "")
		must("explain", err)
	}
	slices.SortFunc(shown, func(a, b time.Duration) int { return cmp.Compare(a, b) })
	id := (p.first + p.last) / 2
	for _, s := range []transfer.State{"", transfer.Done, transfer.FileFailed, transfer.Queued, transfer.Leased, transfer.Skipped} {
		_, err := h.Client.Items(ctx, id, s, 0, 100)
		must("items", err)
	}
	_, err := h.Client.Attempts(ctx, id, 0, 100)
	must("attempts", err)
	for _, f := range []transfer.Filter{{}, {Before: id}, {Open: true}, {Open: true, By: "user1"}, {By: "user1"}, {To: "B"},
		{Dataset: "/data/run1"}, {Status: transfer.Failed}, {Status: transfer.Partial, By: "user2", To: "A"}, {By: "administrator", Before: id}} {
		_, err := h.Client.Requests(ctx, f)
		must("list", err)
	}
	_, _, err = h.Client.Tries(ctx, time.Now().Add(-pastYear/2).UnixNano(), 100)
	must("history", err)
	_, err = h.Client.Samples(ctx, "A", time.Now().Add(-time.Hour), 100)
	must("samples", err)
	_, err = h.Client.Notifications(ctx)
	must("notifications", err)
	metricsOf(h.T, h)
	return shown
}

// prune waits until the coordinator has removed old rows, and checks the remaining samples.
func (p *past) prune() {
	h := p.h
	h.T.Helper()
	samples := func(from, to time.Duration) int64 {
		n, err := db.Select(h.T.Context(), h.db, db.Value[int64], "SELECT COUNT(*) FROM sample WHERE site = 'A' AND at > ? AND at < ?",
			time.Now().Add(-from), time.Now().Add(-to))
		if err != nil {
			h.T.Fatal(err)
		}
		return n[0]
	}
	until(h.T, "samples are thinned and removed, and requests and notifications are removed", func() bool {
		requests, err := db.Select(h.T.Context(), h.db, db.Value[int64], "SELECT COUNT(*) FROM request WHERE ended > 0 AND ended < ?",
			time.Now().Add(-h.conf.Keep))
		if err != nil {
			h.T.Fatal(err)
		}
		notes, err := db.Select(h.T.Context(), h.db, db.Value[int64], "SELECT COUNT(*) FROM notification WHERE made < ?",
			time.Now().Add(-notify.Kept))
		if err != nil {
			h.T.Fatal(err)
		}
		return samples(pastYear, 30*24*time.Hour) == 0 && samples(40*time.Hour, 25*time.Hour) <= 51 && requests[0] == 0 && notes[0] == 0
	})
	all, err := h.Client.Samples(h.T.Context(), "A", time.Now().Add(-40*time.Hour), 100)
	if err != nil || len(all) != 100 {
		h.T.Fatal(len(all), err)
	}
	if m := all[20]; m.Seconds != 60 || math.Abs(m.CPU-0.5) > 1e-9 || math.Abs(m.OwnCPU-30) > 1e-9 || math.Abs(m.MovedBytes-1e6) > 1e-3 {
		h.T.Errorf("a minute is %+v", m)
	}
	if n := samples(2*time.Hour, 0); n < 3000 {
		h.T.Errorf("%d samples of the last 2 hours are left", n)
	}
}

// size returns the size of the database in bytes.
func (p *past) size() (n int64) {
	query := "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
	if p.h.db.Dialect() == db.PostgreSQL {
		query = "SELECT pg_database_size(current_database())"
	}
	all, err := db.Select(p.h.T.Context(), p.h.db, db.Value[int64], query)
	if err != nil {
		p.h.T.Fatal(err)
	}
	return all[0]
}
