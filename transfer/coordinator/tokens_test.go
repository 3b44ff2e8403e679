package coordinator

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/transfertest"
)

// Tokens are listed with the users who made them, and revoked individually. A revoked token is
// refused at once and after a restart; other tokens remain valid.
func TestTokensAreRevoked(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, conf Config) {
		conf.State = t.TempDir()
		h := start(t, conf)
		ctx := t.Context()
		raw, id, err := h.Client.NamedToken(ctx, transfer.NewToken{Subject: "ann", Roles: []string{access.MayRead, access.MaySubmit},
			Life: time.Hour})
		require.NoError(t, err)
		ann, bob := h.Login(raw), h.As("bob", access.MayRead)
		all, err := h.Client.Tokens(ctx)
		if err != nil || len(all) != 3 {
			t.Fatalf("%+v, %v", all, err)
		}
		by := map[string]transfer.Token{}
		for _, k := range all {
			by[k.Subject] = k
		}
		if k := by["ann"]; k.ID != id || strings.Join(k.Roles, " ") != "weir.read weir.submit" || k.By != "administrator" ||
			k.Expires.Sub(k.Made) != time.Hour || !k.Revoked.IsZero() {
			t.Errorf("%+v", k)
		}
		if k := by["administrator"]; !strings.Contains(k.By, "at its start") {
			t.Errorf("%+v", k)
		}
		if _, err := bob.Tokens(ctx); wire.Status(err) != http.StatusForbidden {
			t.Errorf("bob lists tokens: %v", err)
		}
		if _, err := bob.RevokeToken(ctx, id); wire.Status(err) != http.StatusForbidden {
			t.Errorf("bob revokes one: %v", err)
		}
		if _, err := h.Client.RevokeToken(ctx, "none"); wire.Status(err) != http.StatusNotFound || !strings.Contains(err.Error(), "token list") {
			t.Errorf("one that is not there: %v", err)
		}
		if _, err := ann.Sites(ctx); err != nil {
			t.Error(err)
		}
		for range 2 {
			if k, err := h.Client.RevokeToken(ctx, id); err != nil || k.RevokedBy != "administrator" || k.Revoked.IsZero() {
				t.Errorf("%+v, %v", k, err)
			}
		}
		refused := func(when string) {
			t.Helper()
			if _, err := ann.Sites(ctx); wire.Status(err) != http.StatusUnauthorized || !strings.Contains(err.Error(), "was revoked") ||
				strings.Contains(err.Error(), raw) {
				t.Errorf("%s: %v", when, err)
			}
		}
		refused("at once")
		if _, err := bob.Sites(ctx); err != nil {
			t.Errorf("bob: %v", err)
		}
		old, err := h.Admin()
		require.NoError(t, err)
		if _, err := h.Client.RevokeToken(ctx, by["administrator"].ID); err != nil {
			t.Fatal(err)
		}
		h.End()
		h.Begin()
		ann = h.Login(raw)
		refused("after a restart")
		if now, err := h.Admin(); err != nil || now == old {
			t.Errorf("the administrator has the token that was revoked: %v", err)
		}
		if all, err = h.Client.Tokens(ctx); err != nil || len(all) != 4 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// If the token of an agent is revoked while its poll for work waits, the poll fails at once, and
// its stream of events ends. Other agents continue.
func TestRevokedAgentsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	ctx := t.Context()
	raw, id, err := h.Client.NamedToken(ctx, transfer.NewToken{Subject: "agent of A", Roles: []string{access.AgentOf + "A",
		access.MayRead}, Life: time.Hour})
	require.NoError(t, err)
	a, b := h.FakeAgent("A"), h.FakeAgent("B")
	a.Client = h.Login(raw)
	a.Register("")
	b.Register("")
	answers := map[*transfertest.FakeAgent]chan error{a: make(chan error, 1), b: make(chan error, 1)}
	for r, answer := range answers {
		go func() {
			_, err := r.Client.Work(ctx, transfer.PollRequest{Site: r.Site, Session: r.Session, Slots: 1})
			answer <- err
		}()
	}
	follows, ended := make(chan struct{}, 1000), make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.Client.Events(ctx, 0, func(transfer.Event) error { follows <- struct{}{}; return nil })
	}()
	<-follows
	until(t, "both wait", func() bool { return h.leases.RoomAt("A") > 0 && h.leases.RoomAt("B") > 0 })
	if _, err := h.Client.RevokeToken(ctx, id); err != nil {
		t.Fatal(err)
	}
	if err := <-answers[a]; wire.Status(err) != http.StatusUnauthorized {
		t.Errorf("its question for work: %v", err)
	}
	<-ended
	if _, err := a.Report(); wire.Status(err) != http.StatusUnauthorized {
		t.Errorf("its report: %v", err)
	}
	if _, err := b.Report(); err != nil {
		t.Errorf("the other one: %v", err)
	}
	select {
	case err := <-answers[b]:
		if wire.Status(err) == http.StatusUnauthorized {
			t.Error(err)
		}
	default: // the poll still waits
	}
}
