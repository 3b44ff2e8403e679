package run

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"weir/internal/token"
	"weir/internal/unit"
	"weir/loadtest/scenario"
	"weir/storage"
	"weir/storage/diagnosis"
	"weir/storage/gridcert"
	"weir/storage/xrootd/security/krb5"
)

// CredentialWarnings returns a sentence for each credential of a plan that ends before the end of a
// load that begins now. Credentials that cannot be read have no sentence: opening the service
// reports them.
func CredentialWarnings(p *scenario.Plan, load time.Duration) (all []string) {
	now := time.Now()
	warn := func(what string, at time.Time, err error) {
		if err != nil || at.IsZero() || at.After(now.Add(load)) {
			return
		}
		when := fmt.Sprintf("ends at %s, %v before the end of a load that begins now", at.Local().Format(time.RFC3339),
			unit.Duration(now.Add(load).Sub(at).Round(time.Second)))
		if at.Before(now) {
			when = "expired at " + at.Local().Format(time.RFC3339)
		}
		advice := "renew it in its file, which is read again when it changes"
		switch {
		case p.Auth.TokenVariable != "":
			advice = "use one that lasts longer, or auth.token_file, which is read again when it changes"
		case p.On.Batch != "":
			advice = "use one that lasts longer: workers have a copy of the file as it was at their start"
		}
		all = append(all, fmt.Sprintf("the %s %s: %s", what, when, advice))
	}
	a := p.Auth
	switch {
	case a.TokenVariable != "":
		_, until := token.Times(os.Getenv(a.TokenVariable))
		warn("token in variable "+a.TokenVariable, until, nil)
	case a.TokenFile != "":
		text, err := os.ReadFile(a.TokenFile)
		_, until := token.Times(strings.TrimSpace(string(text)))
		warn("token in "+a.TokenFile, until, err)
	}
	if a.Method == storage.X509Auth || a.CertFile != "" || a.ProxyFile != "" {
		warn(gridcert.NewSource(a).Ends())
	}
	if a.Method == storage.KerberosAuth {
		tickets, err := krb5.Open(krb5.Config{User: a.User, KeytabFile: a.KeytabFile, TicketFile: a.TicketFile, Krb5File: a.Krb5File})
		if err == nil {
			warn(tickets.Ends())
		}
	}
	return all
}

// checkToken finds the token of plans with method token that contain no token.
func checkToken(ctx context.Context) HostCheck {
	a := storage.Auth{Method: storage.TokenAuth}.Discovered()
	cred, err := a.Read()
	switch {
	case a.TokenFile == "" && a.TokenVariable == "":
		return hostCheck(true, "bearer token", "none in $BEARER_TOKEN, $BEARER_TOKEN_FILE, $XDG_RUNTIME_DIR/bt_uUID or /tmp/bt_uUID", "")
	case err != nil:
		advice := "auth.method: token needs a token: write one there, or unset the variable"
		if d, ok := diagnosis.Of(ctx, &url.URL{}, a, err, diagnosis.Caller{}, false); ok {
			advice = d.Hint()
		}
		return hostCheck(false, "bearer token", err.Error(), advice)
	}
	is := "in " + cmp.Or(a.TokenFile, "variable "+a.TokenVariable)
	_, until := token.Times(cred.Token)
	if until.IsZero() {
		return hostCheck(true, "bearer token", is, "")
	}
	is += ", valid until " + until.Local().Format(time.RFC3339)
	return hostCheck(until.After(time.Now()), "bearer token", is, "it has expired: renew it")
}
