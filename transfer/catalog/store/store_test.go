package store_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/db"
	"weir/internal/require"
	"weir/lab/dbtest"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
)

var now = time.Date(2026, 11, 22, 1, 2, 3, 4, time.UTC)

func each(t *testing.T, f func(t *testing.T, s *store.Store, d *db.DB)) {
	dbtest.Each(t, func(t *testing.T, open func() *db.DB) {
		d := open()
		f(t, stocked(t, d), d)
	})
}

func stocked(t testing.TB, d *db.DB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), d)
	require.NoError(t, err)
	for _, name := range []string{"A", "B"} {
		require.NoError(t, s.AddSite(t.Context(), catalog.Site{Name: name, Kind: "agent"}))
	}
	return s
}

func entries(all ...catalog.Entry) iter.Seq2[catalog.Entry, error] {
	return func(yield func(catalog.Entry, error) bool) {
		for _, e := range all {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func entry(name string, size int64) catalog.Entry {
	return catalog.Entry{File: catalog.File{Name: name, Size: size, Adler: fmt.Sprintf("%08x", size)}, Verified: now}
}

// made yields n files, a hundred in each block.
func made(n int) iter.Seq2[catalog.Entry, error] {
	return func(yield func(catalog.Entry, error) bool) {
		for i := range n {
			e := entry(fmt.Sprintf("/store/big/block%04d/file%07d.root", i/100, i), int64(i))
			e.Block = fmt.Sprintf("block%04d", i/100)
			if !yield(e, nil) {
				return
			}
		}
	}
}

// census compares the stored sums with the rows that they sum up.
func census(t *testing.T, d *db.DB) {
	t.Helper()
	type row struct {
		Of string
		N  int64
	}
	err := d.Read(t.Context(), func(x *db.Tx) error {
		for kept, counted := range map[string]string{
			"SELECT dataset || site, files FROM presence": "SELECT p.dataset || p.site, (SELECT count(*) FROM replica r JOIN file f ON f.id = " +
				"r.file WHERE r.site = p.site AND f.dataset = p.dataset AND r.bad = '') FROM presence p",
			"SELECT name, files FROM dataset": "SELECT d.name, (SELECT count(*) FROM file WHERE dataset = d.id) FROM dataset d",
			"SELECT name, bytes FROM dataset": "SELECT d.name, (SELECT CAST(COALESCE(sum(size), 0) AS BIGINT) FROM file WHERE " +
				"dataset = d.id) FROM dataset d",
			"SELECT name, blocks FROM dataset": "SELECT d.name, (SELECT count(*) FROM block WHERE dataset = d.id) FROM dataset d",
			"SELECT dataset || name, files FROM block": "SELECT b.dataset || b.name, (SELECT count(*) FROM file WHERE block = " +
				"b.id) FROM block b",
			"SELECT dataset || name, bytes FROM block": "SELECT b.dataset || b.name, (SELECT CAST(COALESCE(sum(size), " +
				"0) AS BIGINT) FROM file WHERE block = b.id) FROM block b",
			"SELECT site, 0 FROM replica GROUP BY site": "SELECT DISTINCT r.site, 0 FROM replica r JOIN file f ON f.id = r.file JOIN presence " +
				"p ON p.dataset = f.dataset AND p.site = r.site",
			"SELECT 'no file', 0 FROM replica WHERE FALSE ": "SELECT 'no file', file FROM replica WHERE file NOT IN (SELECT id FROM file)",
		} {
			scan := func(r *db.Rows) (one row, err error) { return one, r.Scan(&one.Of, &one.N) }
			a, err := db.All(x, scan, kept+" ORDER BY 1, 2")
			if err != nil {
				return err
			}
			b, err := db.All(x, scan, counted+" ORDER BY 1, 2")
			if err != nil {
				return err
			}
			if diff := cmp.Diff(b, a); diff != "" {
				t.Errorf("%s (-counted +kept):\n%s", kept, diff)
			}
		}
		return nil
	})
	require.NoError(t, err)
}

func TestSites(t *testing.T) {
	each(t, func(t *testing.T, s *store.Store, _ *db.DB) {
		ctx := t.Context()
		if err := s.AddSite(ctx, catalog.Site{Name: "A"}); !errors.Is(err, store.ErrExists) {
			t.Errorf("a site twice: %v", err)
		}
		for _, name := range []string{"", "a b", "-x", "a,b", "../a", "ä", strings.Repeat("x", 65), "a\n"} {
			if err := s.AddSite(ctx, catalog.Site{Name: name}); !errors.Is(err, catalog.ErrBad) {
				t.Errorf("site %q: %v", name, err)
			}
		}
		want := catalog.Site{Name: "c.example-1_x", Kind: "http", URL: "https://c:1094/d", Max: 7, Free: 5, Seen: now, Up: true, Problem: "slow"}
		steps := []error{
			s.AddSite(ctx, catalog.Site{Name: want.Name, Kind: "agent"}),
			s.SetSite(ctx, want),
			s.Saw(ctx, want.Name, now, false, -1, ""),
			s.Saw(ctx, want.Name, time.Time{}, true, 5, "slow"),
			s.SetSecret(ctx, want.Name, []byte{0, 200, 1}),
		}
		require.NoError(t, errors.Join(steps...))
		got, err := s.Site(ctx, want.Name)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		if secret, err := s.Secret(ctx, want.Name); err != nil || string(secret) != "\x00\xc8\x01" {
			t.Errorf("secret %x: %v", secret, err)
		}
		if secret, err := s.Secret(ctx, "A"); err != nil || secret != nil {
			t.Errorf("no secret: %x: %v", secret, err)
		}
		if all, err := s.Sites(ctx); err != nil || len(all) != 3 {
			t.Errorf("sites: %v, %v", all, err)
		}
		for what, err := range map[string]error{
			"set": s.SetSite(ctx, catalog.Site{Name: "X"}), "saw": s.Saw(ctx, "X", now, true, 0, ""), "secret": s.SetSecret(ctx, "X", nil),
			"remove": s.RemoveSite(ctx, "X"), "get": second(s.Site(ctx, "X")), "get secret": second(s.Secret(ctx, "X")),
		} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s of an unknown site: %v", what, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// Registered files are found again, the sums are right, and registering the files twice changes
// nothing.
func TestRegister(t *testing.T) {
	each(t, func(t *testing.T, s *store.Store, d *db.DB) {
		ctx := t.Context()
		const n = 12_345
		for range 2 {
			got, err := s.Register(ctx, "/store/big", "A", "me", made(n))
			if err != nil || got.New+got.Known != n || got.New != got.Replicas {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		if got, err := s.Register(ctx, "/store/big", "B", "me", made(7000)); err != nil || got != (store.Added{Known: 7000, Replicas: 7000}) {
			t.Fatalf("at B: %+v, %v", got, err)
		}
		census(t, d)
		got, err := s.Dataset(ctx, "/store/big")
		want := catalog.Dataset{Name: "/store/big", Blocks: 124, Files: n, Bytes: n * (n - 1) / 2, At: map[string]int64{"A": n, "B": 7000}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		if all, err := s.Datasets(ctx, "", 0); err != nil || len(all) != 1 || !maps.Equal(all[0].At, want.At) {
			t.Errorf("%v, %v", all, err)
		}
		if all, err := s.Datasets(ctx, "/store/big", 0); err != nil || len(all) != 0 {
			t.Errorf("the next page: %v, %v", all, err)
		}
		files, err := s.Files(ctx, "/store/big", "/store/big/block0069/file0006998.root", 2)
		one := store.Placed{File: catalog.File{Name: "/store/big/block0069/file0006999.root", Block: "block0069", Size: 6999, Adler: "00001b57"}}
		for _, site := range []string{"A", "B"} {
			one.Replicas = append(one.Replicas, catalog.Replica{File: one.Name, Site: site, Verified: now, By: "me"})
		}
		if err != nil || len(files) != 2 || len(files[1].Replicas) != 1 {
			t.Fatalf("%+v, %v", files, err)
		}
		if diff := cmp.Diff(one, files[0]); diff != "" {
			t.Error(diff)
		}
		if found, err := s.Find(ctx, one.Name, "/nobody"); err != nil || len(found) != 1 || !cmp.Equal(found[0], one) {
			t.Errorf("%v, %v", found, err)
		}
		if files, err := s.Files(ctx, "/store/big", one.Name, 0); err != nil || len(files) != 1000 || files[0].Block == "" {
			t.Errorf("%d files, %v", len(files), err)
		}
	})
}

// Files that contradict the catalog are listed in the error, and the other files are registered.
// Missing checksums are filled in.
func TestContradictions(t *testing.T) {
	each(t, func(t *testing.T, s *store.Store, d *db.DB) {
		ctx := t.Context()
		bare := catalog.Entry{File: catalog.File{Name: "/d/bare", Size: 5}}
		blocked := entry("/d/blocked", 4)
		blocked.Block = "b1"
		if got, err := s.Register(ctx, "/d", "A", "me", entries(entry("/d/a", 1), entry("/d/b", 2), bare, blocked,
			entry("/d/a", 1))); err != nil || got.New != 4 || got.Known != 1 {
			t.Fatal(got, err)
		}
		if _, err := s.Register(ctx, "/other", "A", "me", entries(entry("/other/a", 1))); err != nil {
			t.Fatal(err)
		}
		full := bare
		full.Adler, full.More, full.Verified = "ABC", "sha256=FF,md5=0A", now
		size, sum, block := entry("/d/a", 7), entry("/d/b", 2), blocked
		sum.Adler = "12345678"
		block.Block = "b2"
		got, err := s.Register(ctx, "/d", "B", "me", entries(size, sum, full, block, entry("/other/a", 1), entry("/d/c", 3), entry("/d/c", 4)))
		var wrong *store.ConflictError
		if !errors.As(err, &wrong) || wrong.Files != 5 || got.New != 1 || got.Known != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		want := []store.Conflict{
			{Name: "/d/a", Why: "its size is said to be 7 bytes, 1 are known"},
			{Name: "/d/b", Why: "its adler32 is said to be 12345678, 00000002 is known"},
			{Name: "/d/blocked", Why: `it is said to be in block "b2", it is in "b1"`},
			{Name: "/other/a", Why: "it is part of another dataset"},
			{Name: "/d/c", Why: "its size is said to be 4 bytes, 3 are known"},
		}
		if diff := cmp.Diff(want, wrong.First); diff != "" {
			t.Error(diff)
		}
		if text := err.Error(); !strings.Contains(text, "5 files refused") || !strings.Contains(text, "and 2 more") {
			t.Error(text)
		}
		found, err := s.Find(ctx, "/d/bare")
		if err != nil || found[0].Adler != "00000abc" || found[0].More != "md5=0a,sha256=ff" || len(found[0].Replicas) != 2 {
			t.Errorf("%+v, %v", found, err)
		}
		full.More = "sha256=ee"
		if _, err := s.Register(ctx, "/d", "B", "me", entries(full)); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "sha256") {
			t.Errorf("another sha256: %v", err)
		}
		census(t, d)
	})
}

// Sums of sizes do not overflow: files and datasets have a bound.
func TestSizesHaveABound(t *testing.T) {
	each(t, func(t *testing.T, s *store.Store, d *db.DB) {
		ctx := t.Context()
		if _, err := s.Register(ctx, "/d", "A", "me",
			entries(catalog.Entry{File: catalog.File{Name: "/d/a", Size: math.MaxInt64}})); !errors.Is(err, catalog.ErrBad) {
			t.Errorf("a file of 2^63-1 bytes: %v", err)
		}
		large := func(name string) catalog.Entry {
			return catalog.Entry{File: catalog.File{Name: name, Size: catalog.MostBytes / 2}, Verified: now}
		}
		got, err := s.Register(ctx, "/d", "A", "me", entries(large("/d/a"), large("/d/b"), entry("/d/c", 1)))
		var wrong *store.ConflictError
		if !errors.As(err, &wrong) || wrong.Files != 1 || !strings.Contains(wrong.First[0].Why, "1 EiB") || got.New != 2 {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := s.Register(ctx, "/d", "A", "me", entries(entry("/d/d", 1))); !errors.As(err, &wrong) {
			t.Errorf("later: %v", err)
		}
		census(t, d)
	})
}

func TestBadNames(t *testing.T) {
	each(t, func(t *testing.T, s *store.Store, d *db.DB) {
		for _, name := range []string{"", "a", "/", "//a", "/a/", "/a//b", "/a/../b", "/./a", "/a\nb", "/a\x00", "/\xff", "/.weir/x",
			"/.weir", "/a\\b",
			"/" + strings.Repeat("x", 256), "/" + strings.Repeat("x/", 600) + "x"} {
			if _, err := s.Register(t.Context(), "/d", "A", "", entries(entry(name, 1))); !errors.Is(err, catalog.ErrBad) {
				t.Errorf("file %q: %v", name, err)
			}
			if _, err := s.Register(t.Context(), name, "A", "", entries()); !errors.Is(err, catalog.ErrBad) {
				t.Errorf("dataset %q: %v", name, err)
			}
		}
		for _, e := range []catalog.Entry{
			{File: catalog.File{Name: "/a", Size: -1}}, {File: catalog.File{Name: "/a", Adler: "xyz"}},
			{File: catalog.File{Name: "/a", Adler: "123456789"}},
			{File: catalog.File{Name: "/a", More: "md5"}}, {File: catalog.File{Name: "/a", Block: "\x1b[31m"}},
			{File: catalog.File{Name: "/a"}, Path: "/etc/passwd"}, {File: catalog.File{Name: "/a"}, Path: "../x"},
		} {
			if _, err := s.Register(t.Context(), "/d", "A", "", entries(e)); !errors.Is(err, catalog.ErrBad) {
				t.Errorf("%+v: %v", e, err)
			}
		}
		odd := []string{"/päth/with space", `/'; DROP TABLE file; --"`, "/a?b{{in}}%2F", "/日本", "/<script>"}
		for _, name := range odd {
			if _, err := s.Register(t.Context(), "/d", "A", "", entries(entry(name, 1))); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		if found, err := s.Find(t.Context(), odd...); err != nil || len(found) != len(odd) {
			t.Errorf("%d of %d odd names found: %v", len(found), len(odd), err)
		}
		if _, err := s.Register(t.Context(), "/d", "X", "", entries()); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("unknown site: %v", err)
		}
		oh := errors.New("oh")
		if got, err := s.Register(t.Context(), "/d", "A", "", func(yield func(catalog.Entry, error) bool) {
			_ = yield(entry("/before", 1), nil) && yield(catalog.Entry{}, oh)
		}); !errors.Is(err, oh) || got.New != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		census(t, d)
	})
}

// Arrivals and losses of replicas are counted in any order.
func TestPlaceAndSpoil(t *testing.T) {
	each(t, func(t *testing.T, s *store.Store, d *db.DB) {
		ctx := t.Context()
		if _, err := s.Register(ctx, "/store/big", "A", "me", made(10)); err != nil {
			t.Fatal(err)
		}
		do := func(f func(x *db.Tx) error) {
			t.Helper()
			require.NoError(t, d.Write(ctx, f))
			census(t, d)
		}
		do(func(x *db.Tx) error {
			return store.UpsertReplicas(x, []store.Placement{{File: 1, Site: "B", Verified: now, By: "mover"}, {File: 2, Site: "B"},
				{File: 2, Site: "B"}, {File: 1, Site: "A"}, {File: 77, Site: "B"}})
		})
		do(func(x *db.Tx) error {
			return store.MarkBad(x, []store.BadReplica{{File: 1, Site: "B", Why: "truncated"}, {File: 1, Site: "B", Why: "gone"},
				{File: 3, Site: "B", Why: "never was"}, {File: 77, Site: "A", Why: "x"}})
		})
		got, err := s.Dataset(ctx, "/store/big")
		if err != nil || !maps.Equal(got.At, map[string]int64{"A": 10, "B": 1}) {
			t.Errorf("%v, %v", got, err)
		}
		do(func(x *db.Tx) error { return store.UpsertReplicas(x, nil) })
		do(func(x *db.Tx) error {
			return store.UpsertReplicas(x, []store.Placement{{File: 1, Site: "B", Verified: now}})
		})
		do(func(x *db.Tx) error {
			return store.MarkBad(x, []store.BadReplica{{File: 5, Site: "A", Why: "spoiled"}})
		})
		// A listing without checksums does not make the replica good; reading its checksum does.
		told := entry("/store/big/block0000/file0000004.root", 4)
		told.Verified = time.Time{}
		if got, err := s.Register(ctx, "/store/big", "A", "me", entries(told)); err != nil || got.Replicas != 0 {
			t.Errorf("%+v, %v", got, err)
		}
		told.Verified = now.Add(time.Hour)
		if got, err := s.Register(ctx, "/store/big", "A", "me", entries(told)); err != nil || got.Replicas != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		census(t, d)
	})
}

// Many concurrent registrations, placements and removals do not fail, and the sums stay right.
func TestAllAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s *store.Store, d *db.DB) {
		var all sync.WaitGroup
		for g := range 100 {
			all.Go(func() {
				e := entry(fmt.Sprintf("/d/%d", g/2), 1)
				if _, err := s.Register(t.Context(), "/d", "A", "", entries(e, entry("/d/all", 1))); err != nil {
					t.Errorf("register: %v", err)
				}
				if err := d.Write(t.Context(), func(x *db.Tx) error {
					return store.UpsertReplicas(x, []store.Placement{{File: int64(g % 7), Site: "B"}, {File: int64(g % 3), Site: "A"}})
				}); err != nil {
					t.Errorf("place: %v", err)
				}
				if g%25 == 1 {
					if err := s.RemoveSite(t.Context(), "B"); err != nil && !errors.Is(err, store.ErrNotFound) {
						t.Errorf("remove B: %v", err)
					}
					if err := s.AddSite(t.Context(), catalog.Site{Name: "B"}); err != nil && !errors.Is(err, store.ErrExists) {
						t.Errorf("add B: %v", err)
					}
				}
				if g%25 == 0 {
					if err := s.RemoveDataset(t.Context(), "/d"); err != nil && !errors.Is(err, store.ErrNotFound) {
						t.Errorf("remove: %v", err)
					}
				}
			})
		}
		all.Wait()
		census(t, d)
	})
}

func TestRemove(t *testing.T) {
	each(t, func(t *testing.T, s *store.Store, d *db.DB) {
		ctx := t.Context()
		for _, site := range []string{"A", "B"} {
			if _, err := s.Register(ctx, "/store/big", site, "me", made(5001)); err != nil {
				t.Fatal(err)
			}
		}
		require.NoError(t, s.RemoveSite(ctx, "B"))
		census(t, d)
		if got, err := s.Dataset(ctx, "/store/big"); err != nil || !maps.Equal(got.At, map[string]int64{"A": 5001}) {
			t.Errorf("%v, %v", got, err)
		}
		require.NoError(t, s.RemoveDataset(ctx, "/store/big"))
		census(t, d)
		if err := s.RemoveDataset(ctx, "/store/big"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("removed twice: %v", err)
		}
		for what, err := range map[string]error{
			"get": second(s.Dataset(ctx, "/x")), "files": second(s.Files(ctx, "/x", "", 0)),
		} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s of an unknown dataset: %v", what, err)
			}
		}
		if got, err := s.Register(ctx, "/store/big", "A", "me", made(10)); err != nil || got.New != 10 {
			t.Errorf("added again: %+v, %v", got, err)
		}
	})
}

// BenchmarkRegister measures the number of files per second that are registered.
func BenchmarkRegister(b *testing.B) {
	dbtest.EachBench(b, func(b *testing.B, open func() *db.DB) {
		s := stocked(b, open())
		ctx := context.Background()
		b.ResetTimer()
		if _, err := s.Register(ctx, "/store/big", "A", "me", made(b.N)); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "files/s")
	})
}
