package v1

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"weir/internal/tpc"
)

// The address of an agent determines the area in which its endpoint may be.
func TestAreaOf(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]tpc.Area{
		"127.0.0.1:5": tpc.Loopback, "[::1]:5": tpc.Loopback, "10.0.0.5:5": tpc.Network, "[fd00::1]:5": tpc.Network,
		"[fe80::1%eth0]:5": tpc.Network,
		"8.8.8.8:5":        tpc.Public, "[::ffff:8.8.8.8]:5": tpc.Public, "nonsense": tpc.Public, "10.0.0.9:5": tpc.Loopback, "@": tpc.Public,
	} {
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey,
			&net.TCPAddr{IP: net.ParseIP("10.0.0.9"), Port: 9443}), http.MethodPost, "/", nil)
		r.RemoteAddr = from
		if got := areaOf(r); got != want {
			t.Errorf("%s: %v, want %v", from, got, want)
		}
	}
}
