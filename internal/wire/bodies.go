package wire

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// Bodies limits the bytes of the bodies that a server has read for requests in progress: they are
// in memory. 0 means no limit.
type Bodies struct {
	Most int64 // of all users
	User int64 // of one user; who has no body in progress may send one up to Most
}

// bodyRetry is the delay after which a client whose body did not fit should send it again.
const bodyRetry = 5 * time.Second

// bodies are the bodies in progress.
type bodies struct {
	Bodies
	mu  sync.Mutex
	all int64
	by  map[string]int64
}

// A body counts the bytes that are read of the body of a request until end.
type body struct {
	io.ReadCloser
	of      *bodies
	user    string
	n       int64
	refused error
}

func (b *bodies) begin(user string, r io.ReadCloser) *body {
	return &body{ReadCloser: r, of: b, user: user}
}

// Read implements io.Reader. It fails permanently if the bytes that were read do not fit beside the
// bodies of other requests.
func (r *body) Read(p []byte) (int, error) {
	if r.refused != nil {
		return 0, r.refused
	}
	n, err := r.ReadCloser.Read(p)
	if r.refused = r.of.take(r, int64(n)); r.refused != nil {
		return 0, r.refused
	}
	return n, err
}

func (b *bodies) take(r *body, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Most > 0 && b.all+n > b.Most {
		return &Error{Status: http.StatusServiceUnavailable, After: bodyRetry, Text: "the bodies of other requests fill the memory for them: " +
			"send the request again later"}
	}
	if b.User > 0 && b.by[r.user]+n > b.User && b.by[r.user] > r.n {
		return &Error{Status: http.StatusTooManyRequests, After: bodyRetry, Text: "the bodies of your other requests fill the memory for " +
			"those of one user: send fewer at a time"}
	}
	if b.by == nil {
		b.by = map[string]int64{}
	}
	b.all += n
	b.by[r.user] += n
	r.n += n
	return nil
}

// end forgets the body.
func (r *body) end() {
	if r.n == 0 {
		return
	}
	b := r.of
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all -= r.n
	if b.by[r.user] -= r.n; b.by[r.user] <= 0 {
		delete(b.by, r.user)
	}
}

// BodyRefused returns the error of a body of a Server's request that did not fit beside the bodies
// of other requests, else nil.
func BodyRefused(b io.ReadCloser) error {
	if r, ok := b.(*body); ok {
		return r.refused
	}
	return nil
}
