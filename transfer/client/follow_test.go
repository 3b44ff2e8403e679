package client

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/wire"
)

// A request that took longer than the patience before it failed is repeated. A request that keeps
// failing is given up.
func TestRetryAfterALongRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		ask := func(failures int) func() (int, error) {
			calls = 0
			return func() (int, error) {
				if calls++; calls <= failures {
					time.Sleep(20 * time.Second)
					return 0, wire.Refuse(http.StatusServiceUnavailable, "busy")
				}
				return calls, nil
			}
		}
		if n, err := Retry(t.Context(), true, ask(1)); n != 2 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if _, err := Retry(t.Context(), true, ask(100)); err == nil || calls != 2 {
			t.Errorf("given up after %d calls, %v", calls, err)
		}
	})
}
