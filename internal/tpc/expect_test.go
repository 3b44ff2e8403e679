package tpc

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"weir/internal/require"
)

// A server that refuses Expect gets the file without.
func TestStoreWithoutExpect(t *testing.T) {
	asked, stored := 0, 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Expect") != "" {
			asked++
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		b, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		stored = len(b)
		w.WriteHeader(http.StatusCreated)
	}))
	defer s.Close()
	c := New(Options{})
	defer c.Close()
	err := c.Store(t.Context(), Target{URL: s.URL + "/f"}, 5, func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader([]byte("hello"))), nil
	})
	if err != nil || asked != 1 || stored != 5 {
		t.Errorf("asked %d times, stored %d bytes: %v", asked, stored, err)
	}
}
