package coordinator

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer"
	"weir/transfer/access"
)

// A keycloakPair is a coordinator with two servers that trust a real Keycloak.
type keycloakPair struct {
	*ftsPair
	issuer *lab.Keycloak
	out    *logged
}

// keycloakLife is the lifetime of Keycloak's access tokens. On a busy machine Keycloak needs
// seconds to respond.
const keycloakLife = 30 * time.Second

func startKeycloak(t *testing.T, c lab.KeycloakConfig) *keycloakPair {
	t.Helper()
	c.Life = keycloakLife
	k, out := labtest.Start(t, c), &logged{}
	keys, err := k.Keys(t.Context())
	require.NoError(t, err)
	conf := lab.XRootDConfig{Copies: true, Auth: "ztn", Issuer: k.URL, Keys: keys, Authority: k.System}
	p := &ftsPair{x: labtest.Start(t, conf), y: labtest.Start(t, conf)}
	p.service = start(t, Config{Approve: -1, SiteCA: k.CAFile, JobArea: tpc.Loopback,
		Log: slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Issuers: []access.Issuer{{URL: k.URL, Audience: []string{"https://fts.example.org"}, VO: "atlas",
			ClientID: k.Settings[lab.KeycloakClient], ClientSecret: k.Settings[lab.KeycloakSecret]}}})
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(out.String())
		}
	})
	return &keycloakPair{p, k, out}
}

func (p *keycloakPair) token(who, scope string) string {
	p.T.Helper()
	raw, err := p.issuer.Token(p.T.Context(), who, scope)
	require.NoError(p.T, err)
	return raw
}

// waiting submits a job with new tokens of a user or a client. The job's file waits for a gate.
func (p *keycloakPair) waiting(who, name string) (id string, g *gate) {
	p.T.Helper()
	p.put(p.x, name, []byte("late"))
	g = newGate(p.T, strings.TrimPrefix(p.y.URLs["https"], "https://"))
	tokens := fmt.Sprintf(`,"filesize":4,"source_tokens":[%q],"destination_tokens":[%q]`, p.token(who, "storage.read:/"),
		p.token(who, "storage.modify:/ storage.read:/"))
	return p.bearing(p.token(who, access.FTSScope)).submit(`{"files":[` + strings.ReplaceAll(p.pair(name, tokens), g.to, g.address) +
		`],"params":{"verify_checksum":"none"}}`), g
}

func (p *keycloakPair) logs(text string) int { return strings.Count(p.out.String(), text) }

// Users of a real Keycloak with the settings of docs/fts.md submit to both APIs, and tokens for
// another service are refused. The tokens of their jobs are renewed as long as the jobs wait.
// Tokens with a session are renewed by a refresh token, also after they have expired. Tokens of a
// client without a session are renewed by repeated exchanges.
func TestKeycloak(t *testing.T) {
	tier.Full(t, "Keycloak")
	t.Parallel()
	p := startKeycloak(t, lab.KeycloakConfig{})
	var who ftsWho
	if status := p.bearing(p.token("ada", access.FTSScope)).ask("GET", "/whoami", "", &who); status != http.StatusOK || len(who.VOs) != 1 ||
		who.VOs[0] != "atlas" || who.Method != "oauth2" || len(who.Roles) != 1 || who.Roles[0] != access.MaySubmit {
		t.Errorf("%d %+v", status, who)
	}
	var no struct{ Message string }
	storage := p.token("ada", "storage.read:/")
	if status := p.bearing(storage).ask("POST", "/jobs", `{"files":[`+p.pair("a", "")+`]}`, &no); status != http.StatusUnauthorized ||
		!strings.Contains(no.Message, "another service") {
		t.Errorf("a token for storage: %d %+v", status, no)
	}

	// The API of weir uses the user's unique name.
	p.addSite("X", "https://127.0.0.1:9/x")
	p.Register("/run1", "X", 1, 10)
	p.addSite("Y", "https://127.0.0.1:9/y")
	ada := p.Login(p.token("ada", access.FTSScope))
	q, err := ada.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "Y"})
	if err != nil || q.By != who.User+"@"+strings.TrimPrefix(p.issuer.URL, "https://") {
		t.Errorf("%+v, %v", q, err)
	}
	if _, err := p.Login(storage).Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "Y"}); err == nil {
		t.Error("a token for storage is accepted")
	}

	watcher := p.ftsUser("watcher", access.MaySubmit)
	finished := func(id string) {
		t.Helper()
		if j := watcher.ended(id); j.State != "FINISHED" {
			t.Errorf("%+v", j)
		}
	}
	expire := func() {
		t.Helper()
		expired := time.Now().Add(keycloakLife)
		until(t, "all tokens that are there expire", func() bool { return time.Now().After(expired) })
	}
	ofRobot, gate := p.waiting("robot", "w/robot")
	ofRucio, later := p.waiting("rucio", "w/rucio")
	ofUser, latest := p.waiting("ada", "w/ada")
	expire()
	gate.open()
	finished(ofRobot)
	if p.logs("how=refresh") != 0 {
		t.Error("a token without a session was refreshed")
	}
	p.End()
	expire()
	later.open()
	latest.open()
	p.Begin()
	finished(ofRucio)
	finished(ofUser)
	if n := p.logs("how=refresh"); n < 4 {
		t.Errorf("%d tokens were refreshed", n)
	}
}
