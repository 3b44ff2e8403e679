package serve

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/token"
	"weir/serve/servetest/requests"
)

// A client may perform all operations, with at most this number of bytes. Below 0 there is no
// limit.
type client struct {
	name string
	most int64
}

// May implements Rights.
func (client) May(token.Op, string) bool { return true }

// Most implements Rights.
func (c client) Most() (string, int64, bool) { return c.name, c.most, c.most >= 0 }

// limits accepts tokens that are a number of bytes.
func limits(r *http.Request) (Rights, error) {
	raw, ok := token.FromHeader(r)
	most, err := strconv.ParseInt(raw, 10, 64)
	if !ok || err != nil {
		return nil, ErrCredentials
	}
	return client{raw, most}, nil
}

// Many simultaneous uploads with one token have as much room as a single upload.
func TestOneTokenManyUploads(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Config{Dir: dir, Authenticate: limits})
	raw := "100"
	from, to := io.Pipe()
	done := make(chan int, 1)
	go func() { done <- requests.Put(t, s.URL()+"/g", raw, from) }()
	if _, err := to.Write([]byte(strings.Repeat("x", 60))); err != nil {
		t.Fatal(err)
	}
	for held := int64(0); held < 60; <-time.After(time.Millisecond) { // until the server has it
		s.quotas.mu.Lock()
		for _, n := range s.quotas.held {
			held = n
		}
		s.quotas.mu.Unlock()
	}
	for _, size := range []int{41, 40} {
		x := exchange{Method: "PUT", Path: "/f", Body: strings.Repeat("y", size), Code: map[int]int{41: 413, 40: 201}[size],
			Header: map[string]string{"Authorization": "Bearer " + raw}}
		check(t, s, x)
	}
	_ = to.Close()
	if code := <-done; code != 201 {
		t.Errorf("the first one: %d", code)
	}
	if len(s.quotas.held) != 0 {
		t.Errorf("bytes stay reserved: %v", s.quotas.held)
	}
}

// A server may have a limit of its own for credentials without a limit.
func TestLargestFile(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Config{Dir: dir, Authenticate: limits, MaxFile: 100})
	for n, tt := range []struct {
		token string
		size  int
		code  int
	}{
		{"-1", 100, 201}, {"-1", 101, 413},
		{"200", 200, 201}, {"200", 201, 413},
	} {
		x := exchange{Method: "PUT", Path: "/f" + strconv.Itoa(n), Body: strings.Repeat("x", tt.size), Code: tt.code}
		x.Header = map[string]string{"Authorization": "Bearer " + tt.token}
		check(t, s, x)
	}
}
