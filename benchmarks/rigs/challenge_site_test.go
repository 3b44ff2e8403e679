package rigs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"weir/internal/token"
	"weir/internal/tpc"
	"weir/serve"
	"weir/transfer/endpoint"
)

// siteWord is the first argument of this program as a site of a data challenge.
const siteWord = "challenge-site"

// A siteSpec describes a site: weir serve with third-party copies, and its faults.
type siteSpec struct {
	Dir, Listen string
	Rate        int64         // bytes/s of a connection; 0: no limit
	Total       int64         // bytes/s of the storage, each way; 0: no limit
	Most        int           // third-party copies at once, others are refused; 0: 100
	Doors       int           // third-party copies at once, others wait; 0: no limit
	Login       time.Duration // of each GET, one after the other
	Sum         time.Duration // of each checksum, one after the other
	SumRate     int64         // bytes/s of a checksum of the whole file, before each answer to a GET; 0: none
	Every       int           // refuse each request of this number; 0: none
	Tokens      bool          // require a bearer token whose time is not over
	XRootD      bool          // XRootD instead of weir serve, of these fields with Extra alone
	Extra       string        // lines of its configuration
}

// runSite serves as a site until SIGTERM. Its first line of output is the URL.
func runSite(args []string, out io.Writer) error {
	var c siteSpec
	if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
		return err
	}
	guard := tpc.Guard{Hosts: []string{"*"}, Private: true}
	conf := serve.Config{Dir: c.Dir, Listen: c.Listen, Public: true, Rate: c.Rate, TotalRate: c.Total, Grace: time.Second,
		Extensions: []serve.Extension{newSiteFaults(c), endpoint.NewCopier(endpoint.CopyOptions{Guard: guard, Most: c.Most})}}
	if c.Tokens {
		conf.Authenticate = authenticate
	}
	s, err := serve.New(conf)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() { // the site ends with its rig
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	l, err := s.Listen(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, s.URL()); err != nil {
		return err
	}
	return s.Serve(ctx, l)
}

// allRights are the rights of every token that has not ended.
type allRights struct{}

// May implements serve.Rights.
func (allRights) May(token.Op, string) bool { return true }

// Most implements serve.Rights.
func (allRights) Most() (string, int64, bool) { return "", 0, false }

// authenticate accepts bearer tokens until the end that they state.
func authenticate(r *http.Request) (serve.Rights, error) {
	raw, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if until := token.ExpiryOf(raw); !ok || time.Now().After(until) {
		return nil, &serve.Refusal{Code: http.StatusUnauthorized, Reason: "the token has ended"}
	}
	return allRights{}, nil
}

// siteFaults delay and refuse requests. They implement serve.Extension.
type siteFaults struct {
	siteSpec
	doors    chan struct{}
	login    sync.Mutex
	sums     sync.Mutex
	requests atomic.Int64
}

func newSiteFaults(c siteSpec) *siteFaults {
	return &siteFaults{siteSpec: c, doors: make(chan struct{}, max(c.Doors, 1))}
}

// Attach implements serve.Extension.
func (*siteFaults) Attach(*serve.Server) error { return nil }

// Close implements serve.Extension.
func (*siteFaults) Close() error { return nil }

// Answer implements serve.Extension: it delays a request that others answer, or refuses it.
func (f *siteFaults) Answer(r *serve.Request) bool {
	switch {
	case r.Method == http.MethodHead && (r.Header.Get("Want-Digest") != "" || r.Header.Get("Want-Repr-Digest") != ""):
		one(&f.sums, f.Sum)
	case r.Method == http.MethodGet:
		one(&f.login, f.Login)
		f.sum(r)
		return f.refuse(r)
	case r.Method == "COPY":
		f.door(r)
		return f.refuse(r)
	}
	return false
}

// one holds a lock for a time.
func one(lock *sync.Mutex, d time.Duration) {
	if d > 0 {
		lock.Lock()
		defer lock.Unlock()
		time.Sleep(d)
	}
}

// sum takes the time of a checksum of the file.
func (f *siteFaults) sum(r *serve.Request) {
	if f.SumRate == 0 {
		return
	}
	if st, err := os.Stat(filepath.Join(f.Dir, filepath.FromSlash(r.URL.Path))); err == nil {
		time.Sleep(time.Duration(float64(st.Size()) / float64(f.SumRate) * float64(time.Second)))
	}
}

// refuse refuses each request of the number Every.
func (f *siteFaults) refuse(r *serve.Request) bool {
	if f.Every == 0 || f.requests.Add(1)%int64(f.Every) != 0 {
		return false
	}
	r.Fail(http.StatusForbidden, "this request is refused")
	return true
}

// door waits until the site has a free place for a third-party copy, which is free again when the
// request ends.
func (f *siteFaults) door(r *serve.Request) {
	if f.Doors == 0 {
		return
	}
	select {
	case f.doors <- struct{}{}:
		context.AfterFunc(r.Context(), func() { <-f.doors })
	case <-r.Context().Done():
	}
}
