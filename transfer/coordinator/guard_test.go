package coordinator

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"weir/internal/tpc"
	"weir/transfer"
)

// Where an agent has come from is how near its door is looked for.
func TestWhereAgentsComeFrom(t *testing.T) {
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

// An agent from elsewhere cannot have the coordinator ask what only that reaches: it
// says that its door is there, or redirects there.
func TestCoordinatorsAreNotSentAnywhere(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	victim := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(victim.Close)
	away := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/latest/", http.StatusTemporaryRedirect))
	t.Cleanup(away.Close)
	h := start(t, Config{})
	for site, tt := range map[string]struct {
		area tpc.Area
		door string
		good bool
	}{
		"HERE": {tpc.Loopback, victim.URL, true}, "LAB": {tpc.Network, victim.URL, false}, "FAR": {tpc.Public, victim.URL, false},
		"META": {tpc.Loopback, "http://169.254.169.254", false}, "AWAY": {tpc.Loopback, away.URL, false},
		"INSIDE": {tpc.Public, "http://10.0.0.1:1", false},
	} {
		h.robot(site).register(tt.door)
		h.registry.mu.Lock()
		if site == "HERE" && h.registry.agents[site].area != tpc.Loopback {
			t.Errorf("it has come from %v", h.registry.agents[site].area)
		}
		h.registry.agents[site].area = tt.area
		h.registry.mu.Unlock()
		before := asked.Load()
		l := transfer.Lease{Item: 1, Epoch: 1, Size: 1, Dest: transfer.End{Site: site, Path: "f"}}
		_, err := h.tpc.Stat(t.Context(), h.target(l, l.Dest, "storage.read:/f"))
		if tt.good != (err == nil) || !tt.good && (tpc.KindOf(err) != tpc.Denied || !strings.Contains(err.Error(), "private network")) ||
			!tt.good && asked.Load() != before {
			t.Errorf("%s: %v, asked %d times", site, err, asked.Load()-before)
		}
	}
}
