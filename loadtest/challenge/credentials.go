package challenge

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"weir/internal/document"
	"weir/internal/say"
	"weir/internal/token"
	"weir/internal/unit"
	"weir/storage"
	"weir/storage/gridcert"
)

// A finding is a problem of credentials, with the keys that have it.
type finding struct {
	text  string
	fatal bool
	local bool // fatal on the machine of the challenge alone
	owner []string
}

// Credentials checks that the credentials of the sites and of the service last until the end of a
// challenge that begins now. Credentials that have ended, and those that will end and cannot be
// renewed meanwhile, are an error of type document.Mistakes. warnings has a sentence for those that
// must be renewed in their files. Credentials that cannot be read on this machine are an error if the
// challenge begins here, and a warning otherwise.
func (c *Challenge) Credentials(now time.Time, here bool) (warnings []string, err error) {
	var found []finding
	end := now.Add(c.Duration() + time.Duration(c.Files.Linger))
	check := func(owner string, a storage.Auth) {
		for _, f := range credentialFindings(a, now, end) {
			i := slices.IndexFunc(found, func(other finding) bool { return other.text == f.text })
			if i < 0 {
				i = len(found)
				found = append(found, f)
			}
			found[i].owner = append(found[i].owner, owner)
		}
	}
	if c.Inject.By != Direct {
		check("inject.auth", c.Inject.Auth)
	}
	for i := range c.Sites {
		check(fmt.Sprintf("sites.%d.auth (%s)", i, c.Sites[i].Name), c.Sites[i].Auth)
	}
	var all document.Mistakes
	for _, f := range found {
		text := owners(f.owner) + ": " + f.text
		if f.fatal || f.local && here {
			all = append(all, &document.Mistake{Text: text})
		} else {
			warnings = append(warnings, text)
		}
	}
	return warnings, all.Err()
}

// owners lists the keys of the first owners of credentials.
func owners(all []string) string {
	const shown = 3
	if n := len(all) - shown; n > 1 {
		all = append(slices.Clip(all[:shown]), say.Plural(n, "more site"))
	}
	return strings.Join(all, ", ")
}

// credentialFindings returns the problems of credentials that are needed from now until end.
func credentialFindings(a storage.Auth, now, end time.Time) (all []finding) {
	add := func(what string, until time.Time, err error, renewed bool) {
		switch {
		case err != nil:
			all = append(all, finding{text: fmt.Sprintf("%s cannot be read: %v; write it there, or correct the path", what, err), local: true})
		case until.IsZero() || until.After(end):
		case until.Before(now):
			all = append(all, finding{text: fmt.Sprintf("the %s ended at %s; get a new one", what, say.UTC(until)), fatal: true})
		default:
			text := fmt.Sprintf("the %s ends at %s, %v before the end of a challenge that begins now", what, say.UTC(until),
				unit.Duration(end.Sub(until).Round(time.Second)))
			advice := "; use one that lasts longer, or auth.token_file, which is read again when it changes"
			if renewed {
				advice = "; renew it in its file in time, the file is read again when it changes"
			}
			all = append(all, finding{text: text + advice, fatal: !renewed})
		}
	}
	switch {
	case a.TokenVariable != "":
		_, until := token.Times(strings.TrimSpace(os.Getenv(a.TokenVariable)))
		add("token in variable "+a.TokenVariable, until, nil, false)
	case a.TokenFile != "":
		text, err := os.ReadFile(a.TokenFile)
		_, until := token.Times(strings.TrimSpace(string(text)))
		add("token in "+a.TokenFile, until, err, true)
	}
	if a.Method == storage.X509Auth || a.CertFile != "" || a.ProxyFile != "" {
		what, until, err := gridcert.NewSource(a).Ends()
		if what == "" {
			what = "certificate"
		}
		add(what, until, err, true)
	}
	return all
}
