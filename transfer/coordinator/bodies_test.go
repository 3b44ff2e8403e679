package coordinator

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"net/http"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tpc"
	"weir/internal/wire"
	"weir/transfer/access"
	"weir/transfer/fts/rest"
)

// A body whose announced length is too large is refused before it is received.
func TestAnnouncedBodiesAreRefused(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	u := h.ftsUser("ada", access.MaySubmit)
	for _, path := range []string{rest.Path + "/jobs", "/api/v1/requests"} {
		c, err := (&tls.Dialer{Config: wire.Pinned(h.Pin())}).DialContext(t.Context(), "tcp", h.server.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Length: 99999999999999\r\n\r\n", path, u.raw)
		require.NoError(t, err)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute/2))) // less than the time that the server waits for a body
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusRequestEntityTooLarge || !res.Close {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

// Unfinished bodies of one user do not fill the memory, and do not keep other users from
// submitting.
func TestBodiesOfAUserAreLimited(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback, bodies: wire.Bodies{Most: 8 << 20, User: 2 << 20}})
	ada, bob := h.ftsUser("ada", access.MaySubmit), h.ftsUser("bob", access.MaySubmit)
	const size = 3 << 19
	unfinished := func() { // the server waits for its end for a limited time
		c, err := (&tls.Dialer{Config: wire.Pinned(h.Pin())}).DialContext(t.Context(), "tcp", h.server.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, _ = fmt.Fprintf(c, "POST %s/jobs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n{\"x\":\"%s",
			rest.Path, ada.raw, size+1, bytes.Repeat([]byte("x"), size-6)) // it may be refused as well
	}
	large := fmt.Sprintf(`{"files":[{"sources":["https://127.0.0.1:1/f"],"destinations":["https://127.0.0.1:2/f"]}],
		"params":{"job_metadata":"%s"}}`, bytes.Repeat([]byte("x"), 5<<20))
	var refused struct{ Message string }
	until(t, "the second body is refused", func() bool { // the server has then read an unfinished body
		unfinished()
		status := ada.ask("POST", "/jobs", large, &refused)
		return status == http.StatusTooManyRequests
	})
	if status := bob.ask("POST", "/jobs", large, &refused); status != http.StatusBadRequest { // because of the size of the metadata
		t.Errorf("another user: %d %+v", status, refused)
	}
}
