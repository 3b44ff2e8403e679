package tpc

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// A server that gets a request for one kind of checksum while it computes another kind returns the
// value of the other kind. Such requests are not sent.
func TestOneKindAtATime(t *testing.T) {
	var mu sync.Mutex
	inside := map[string]map[string]int{} // requests by path and kind
	asked, wrong := 0, 0
	count := func(path, kind string, n int) {
		mu.Lock()
		defer mu.Unlock()
		if inside[path] == nil {
			inside[path] = map[string]int{}
		}
		inside[path][kind] += n
		for other, n := range inside[path] {
			if other != kind && n > 0 {
				wrong++
			}
		}
		asked += max(n, 0)
	}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		kind := r.Header.Get("Want-Digest")
		if kind == "" {
			return // the size is requested by GET
		}
		count(r.URL.Path, kind, 1)
		<-time.After(time.Millisecond) // it computes
		count(r.URL.Path, kind, -1)
		rw.Header().Set("Digest", kind+"=00000001")
	}))
	t.Cleanup(s.Close)
	c := client(t, Options{})
	var all sync.WaitGroup
	for range 20 {
		for _, want := range []string{"00000001", "crc32c:00000001"} {
			for _, path := range []string{"/f", "/g"} {
				all.Go(func() {
					if info, err := c.Checksum(t.Context(), Target{URL: s.URL + path}, Wish{Want: want}); err != nil || info.Adler != want {
						t.Errorf("%s: %+v, %v", want, info, err)
					}
				})
			}
		}
	}
	all.Wait()
	if asked < 80 || wrong > 0 {
		t.Errorf("%d requests, %d of them while another kind was requested", asked, wrong)
	}
}
