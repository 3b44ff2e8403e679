package serve_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/serve"
	"weir/serve/servetest"
)

// Responses to ranges follow RFC 9110, also where net/http deviates.
func TestOddRanges(t *testing.T) {
	url := servetest.Start(t, serve.Config{Dir: t.TempDir()})
	do := func(method, header, value, body string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url+"/f", strings.NewReader(body))
		require.NoError(t, err)
		if header != "" {
			req.Header.Set(header, value)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	const text = "0123456789"
	do(http.MethodPut, "", "", text)
	for value, want := range map[string]struct {
		status int
		body   string
	}{
		"items=0-1": {200, text}, "bytes=2-3": {206, "23"}, "Bytes=2-3": {206, "23"}, "bytes=-2": {206, "89"}, "bytes=-0": {416, ""},
		"bytes=-000": {416, ""}, "bytes=8-18446744073709551615": {206, "89"}, "bytes=8-99999999999999999999999999": {206, "89"},
		"bytes=18446744073709551615-": {416, ""}, "bytes=10-": {416, ""}, "bytes=-99999999999999999999999": {206, text},
		"bytes=-0,0-1": {206, "01"}, "bytes=00000000000000000000002-3": {206, "23"},
	} {
		res := do(http.MethodGet, "Range", value, "")
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		if res.StatusCode != want.status || want.body != "" && string(body) != want.body {
			t.Errorf("%s: %d %q, want %d %q", value, res.StatusCode, body, want.status, want.body)
		}
		if all := res.Header.Get("Content-Range"); want.status == 416 && all != "bytes */10" {
			t.Errorf("%s: Content-Range %q", value, all)
		}
	}
	if res := do(http.MethodPut, "Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==", "other"); res.StatusCode/100 != 4 {
		t.Errorf("a wrong Content-MD5: status %d", res.StatusCode)
	}
	if res := do(http.MethodPut, "Content-MD5", "eB5eJF1ptWaXm4bijSPyxw==", text); res.StatusCode/100 != 2 { // openssl md5 -binary | base64
		t.Errorf("a right Content-MD5: status %d", res.StatusCode)
	}
}
