package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/internal/durable"
	"weir/internal/tpc"
	"weir/transfer"
	"weir/transfer/catalog"
)

// A TokenFile is a token that the coordinator writes to a file at its start, unless the file has a
// token for the same subject and roles that is valid for a tenth of its lifetime.
type TokenFile struct {
	Token transfer.NewToken
	File  string
}

// CheckSite returns what is wrong with a site without an agent.
func CheckSite(in *transfer.NewSite) error {
	if err := errors.Join(catalog.CheckSite(in.Name), checkEndpointURL(in.URL)); err != nil {
		return err
	}
	if in.Max < 0 || in.Max > 10000 || len(in.Token) > 64<<10 || len(in.Pin) > 64 {
		return fmt.Errorf("site %s: expected 0 to 10000 concurrent transfers and a token of at most 64 kB", in.Name)
	}
	if in.Token != "" && strings.HasPrefix(in.URL, "http:") && !isLoopbackURL(in.URL) {
		return fmt.Errorf("site %s: tokens are not sent without TLS: use https://", in.Name)
	}
	if i := slices.IndexFunc(in.Servers, func(s string) bool { return !tpc.IsHosts(s) || s == "*" }); i >= 0 {
		return fmt.Errorf("site %s: invalid data server %.100q: use HOST, HOST:PORT or *.DOMAIN", in.Name, in.Servers[i])
	}
	return nil
}

// predefine adds the sites and writes the tokens of the configuration.
func (c *Coordinator) predefine(ctx context.Context) error {
	for i := range c.conf.Sites {
		in := &c.conf.Sites[i]
		if err := CheckSite(in); err != nil {
			return err
		}
		if err := c.putSite(ctx, newSite(in), secretsIn(in)); err != nil {
			return fmt.Errorf("site %s: %w", in.Name, err)
		}
	}
	for _, t := range c.conf.Tokens {
		if err := c.keepToken(ctx, t); err != nil {
			return fmt.Errorf("token of %s: %w", t.Token.Subject, err)
		}
	}
	return nil
}

func newSite(in *transfer.NewSite) catalog.Site {
	return catalog.Site{Name: in.Name, Kind: httpKind, URL: strings.TrimSuffix(in.URL, "/"), Max: in.Max}
}

func secretsIn(in *transfer.NewSite) secrets {
	return secrets{Token: in.Token, Pin: in.Pin, Servers: in.Servers, Lend: in.Lend}
}

// keepToken writes a token to its file. A file with something else than a token stays, with an error.
func (c *Coordinator) keepToken(ctx context.Context, t TokenFile) error {
	if err := checkToken(&t.Token); err != nil {
		return err
	}
	text, err := os.ReadFile(t.File)
	if raw := strings.TrimSpace(string(text)); err == nil && raw != "" {
		if !strings.HasPrefix(raw, "ey") || strings.Count(raw, ".") != 2 || strings.ContainsAny(raw, " \r\n") {
			return fmt.Errorf("%s has something else than a token: name another file", t.File)
		}
		who, err := c.tokenHolder(ctx, raw)
		same := err == nil && who.name == t.Token.Subject && slices.Equal(who.roles, t.Token.Roles)
		if same && who.until.Sub(c.now()) > t.Token.Life/10 {
			return nil
		}
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	raw, id, err := c.issueRole(ctx, t.Token.Subject, t.Token.Roles, t.Token.Life, "the configuration file")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(t.File), 0o700); err != nil {
		return err
	}
	c.log.Info("token written", "id", id, "for", t.Token.Subject, "file", t.File, "life", t.Token.Life.Round(time.Second).String())
	return durable.Write(t.File, []byte(raw+"\n"), 0o600)
}
