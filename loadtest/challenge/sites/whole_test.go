package sites

import (
	"sync"
	"testing"

	"weir/internal/require"
	"weir/internal/tpc"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/direct"
	"weir/serve"
	"weir/storage"
	"weir/storage/all"
	"weir/transfer/endpoint"
)

// Files that are made at real sites are copied by third-party copies, verified and removed. Whatever
// ended copies have left, Clean removes everything.
func TestCopiesOfRealSites(t *testing.T) {
	const byRoot = "ofs.tpc ttl 60 120 pgm /usr/bin/xrdcp --server\n"
	x := labtest.Start(t, lab.XRootDConfig{Copies: true, Extra: byRoot})
	y := labtest.Start(t, lab.XRootDConfig{Copies: true, Extra: byRoot})
	own := t.TempDir()
	served := start(t, serve.Config{Dir: own, Extensions: []serve.Extension{
		endpoint.NewCopier(endpoint.CopyOptions{Guard: tpc.Guard{Hosts: []string{"127.0.0.1"}, Private: true}})}})
	c := newChallenge(x.URLs["http"], y.URLs["http"])
	c.Sites[0].Root, c.Sites[1].Root = x.URLs["root"], y.URLs["root"]
	c.Sites = append(c.Sites, challenge.Site{Name: "S", URL: served})
	c.Links = []challenge.Link{{From: "A", To: "B"}, {From: "B", To: "A", Protocol: challenge.XRootD},
		{From: "A", To: "S", Mode: challenge.Push}, {From: "S", To: "B"}}
	m := &manifest{}
	s := open(t, c, m)
	require.NoError(t, s.Prepare(t.Context(), nil))
	var mu sync.Mutex
	ended := map[int64]inject.Report{}
	in, err := direct.New(t.Context(), inject.Config{Challenge: c, Drivers: all.Drivers(),
		Credentials: func(string) (storage.Credentials, error) { return storage.Credentials{}, nil },
		Report: func(r inject.Report) {
			mu.Lock()
			defer mu.Unlock()
			if r.State.Ended() {
				ended[r.ID] = r
			}
		}})
	require.NoError(t, err)
	var copies []inject.Copy
	for i := range int64(20) {
		link := int(i) % len(c.Links)
		one := inject.Copy{ID: i, Link: link, Source: s.Source(link, int(i)), Dest: s.Dest(link, i)}
		require.NoError(t, m.Created(Made{Site: c.Links[link].To, Path: one.Dest, Size: one.Source.Size}))
		copies = append(copies, one)
	}
	require.NoError(t, in.Start(t.Context(), copies))
	require.NoError(t, in.Cancel(t.Context(), []int64{16, 17, 18, 19}))
	require.Eventually(t, "all copies end", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(ended) == len(copies)
	})
	require.NoError(t, in.Close())
	for i, one := range copies[:16] {
		verified, err := s.Verify(t.Context(), c.Links[one.Link].To, one.Dest, one.Source)
		if r := ended[one.ID]; r.State != inject.Done || r.Moved != one.Source.Size || err != nil || !verified {
			t.Errorf("copy %d: %+v, %v, %v", one.ID, r, verified, err)
		}
		if i < 8 {
			require.NoError(t, s.Remove(t.Context(), c.Links[one.Link].To, one.Dest))
		}
	}
	require.NoError(t, s.Clean(t.Context()))
	for _, dir := range []string{x.Data, y.Data, own} {
		if got := names(t, dir); len(got) > 0 || len(m.made) > 0 {
			t.Errorf("left: %v, %v", got, m.made)
		}
	}
}
