package access

import (
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/internal/db"
	"weir/internal/require"
	"weir/internal/trust"
	"weir/lab/labtest"
	"weir/transfer/catalog/store"
	"weir/transfer/health"
	"weir/transfer/queue"
)

// A bearerRig renews tokens of an issuer when a test calls renew.
type bearerRig struct {
	*Control
	t   *testing.T
	iam *labtest.IAM
}

func startBearers(t *testing.T, c labtest.IAMConfig) *bearerRig {
	t.Helper()
	iam := labtest.StartIAM(t, c)
	dir, ctx := t.TempDir(), t.Context()
	d, err := db.Open(ctx, "sqlite:"+filepath.Join(dir, "weir.db"), db.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	_, err = store.Open(ctx, d)
	require.NoError(t, err)
	q, err := queue.Open(ctx, d, queue.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Migrate(ctx, "coordinator", os.DirFS("../state/schema")))
	box, err := NewBox(filepath.Join(dir, SecretsFile))
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	control, err := New(ctx, Config{State: dir, Issuers: []Issuer{{URL: iam.URL, ClientID: "weir", ClientSecret: iam.Secret}}, DB: d, Box: box,
		Queue: q, Health: health.New(log), Log: log, Now: time.Now})
	require.NoError(t, err)
	t.Cleanup(control.Close)
	pool, err := trust.WithSystem(iam.CAFile)
	require.NoError(t, err)
	require.NoError(t, control.OpenTokens(ctx, "https://weir.example.org", &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}))
	return &bearerRig{control, t, iam}
}

// keep returns the token of a job.
func (h *bearerRig) keep(job, sub string, claims map[string]any) *bearer {
	h.t.Helper()
	id, add, err := h.inspectBearer(h.t.Context(), h.iam.Token(sub, "storage.read:/", claims))
	require.NoError(h.t, err)
	require.NoError(h.t, h.keepBearers(h.t.Context(), job, map[string]*bearer{id: add}))
	b, err := h.bearer(h.t.Context(), id)
	require.NoError(h.t, err)
	return b
}

func (h *bearerRig) renew(b *bearer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return h.renewBearerLocked(h.t.Context(), b)
}

// A refresh token that its issuer no longer accepts is dropped: the token of a later job is
// exchanged for another refresh token.
func TestDeadRefreshTokens(t *testing.T) {
	t.Parallel()
	h := startBearers(t, labtest.IAMConfig{})
	b := h.keep("one", "rucio", nil)
	b.mu.Lock()
	b.refresh = "dead"
	b.mu.Unlock()
	if err := h.renew(b); err == nil {
		t.Fatal("the issuer took it")
	}
	if err := h.renew(h.keep("two", "rucio", nil)); err != nil || b.refresh == "dead" {
		t.Errorf("the token of the next job: %v", err)
	}
}

// A job brings a new token when the refresh token of an earlier job, with the same rights, has
// ended or is no longer accepted.
func TestTokensAfterRefreshTokensEnd(t *testing.T) {
	t.Parallel()
	for name, idle := range map[string]time.Duration{"known": time.Second, "unknown": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startBearers(t, labtest.IAMConfig{Idle: idle})
			b := h.keep("one", "rucio", nil)
			require.NoError(t, h.renew(b))
			ended := time.Now().Add(idle)
			require.Eventually(t, "the refresh token ends", func() bool { return time.Now().After(ended) })
			b.mu.Lock()
			if b.expires = time.Now().Add(-time.Hour); idle == 0 {
				b.refresh = "dead"
			}
			b.mu.Unlock()
			h.keep("two", "rucio", nil)
			if _, err := h.fresh(t.Context(), b.id); err != nil {
				t.Error(err)
			}
			for range 2 { // the coordinator detects a dead refresh token
				if err := h.renew(b); err != nil && idle > 0 {
					t.Error(err)
				}
				b.mu.Lock()
				b.next = time.Time{}
				b.mu.Unlock()
			}
			if b.refresh == "" || b.refresh == "dead" {
				t.Errorf("refresh token %q", b.refresh)
			}
		})
	}
}

// If an issuer gives no refresh token for the token of a client, which has no session, a refresh
// token is still requested for a user.
func TestRefreshTokensOfSomeUsers(t *testing.T) {
	t.Parallel()
	h := startBearers(t, labtest.IAMConfig{Exchange: true})
	client, user := h.keep("one", "rucio", nil), h.keep("two", "ada", map[string]any{"sid": "1"})
	for range 2 {
		if err := h.renew(client); err != nil || client.refresh != "" {
			t.Errorf("the token of a client: %v", err)
		}
	}
	if err := h.renew(user); err != nil || user.refresh == "" {
		t.Errorf("the token of a user has no refresh token: %v", err)
	}
	asked := 0
	for _, n := range h.iam.Asked() {
		asked += n
	}
	if asked > 5 { // two of the requests for the client were refused
		t.Errorf("%d requests", asked)
	}
}
