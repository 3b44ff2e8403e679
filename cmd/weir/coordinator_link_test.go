package main

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/transfer/trial"
)

// The printed link signs a browser in, once.
func TestLinkOfPage(t *testing.T) {
	r := rooms(t, trial.Options{})
	link := strings.TrimSpace(r.wants(0, words("coordinator link"), "/#code="))
	at, code, _ := strings.Cut(link, "/#code=")
	browser := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer browser.CloseIdleConnections()
	for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/session", strings.NewReader(`{"code":"`+code+`"}`))
		require.NoError(t, err)
		q.Header.Set("X-Weir", "test")
		a, err := browser.Do(q)
		require.NoError(t, err)
		_ = a.Body.Close()
		if cookies := a.Cookies(); a.StatusCode != want || want == http.StatusOK &&
			(len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].Secure != strings.HasPrefix(at, "https:")) {
			t.Errorf("%d instead of %d, with %v", a.StatusCode, want, cookies)
		}
	}
}
