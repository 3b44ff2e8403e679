package coordinator

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"testing"

	"weir/internal/require"
)

// A coordinator that ends does not wait for pages that follow its events: it ends their streams
// without an error.
func TestEventsEndWithTheCoordinator(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	raw, err := h.Admin()
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL()+"/api/v1/events", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+raw)
	ask := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	res, err := ask.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	from := bufio.NewReader(res.Body)
	if line, err := from.ReadString('\n'); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %q, %v", res.StatusCode, line, err)
	}
	h.End()
	if rest, err := io.ReadAll(from); err != nil {
		t.Errorf("broken off: %v, after %q", err, rest)
	}
}
