package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/unit"
	"weir/transfer"
	"weir/transfer/client"
)

func tokenCommand(s streams) *cobra.Command {
	var f clientFlags
	var site, name, life, out string
	var roles []string
	c := &cobra.Command{
		Use:   "token {--site SITE | --name NAME --role ROLES}",
		Short: "Make a token for an agent or a user",
		Long: `Has the coordinator make a token and prints it. It is a secret: who has it may do
what it says until it ends, or is revoked. An agent of a site needs one for that site;
users have roles:
  read      see everything but secrets
  submit    ask for datasets, cancel and retry one's own requests
  approve   let requests begin, reject, cancel and retry them
  admin     all of it, and sites, datasets and tokens`,
		Example: `  weir coordinator token --site B --out b.token
  weir coordinator token --name alice --role submit --life 90d --out alice.token
  weir coordinator token list`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t, err := newToken(site, name, life, roles)
			if err != nil {
				return usageError(c, err)
			}
			return f.call(func(co *client.Client) error {
				text, id, err := co.NamedToken(c.Context(), t)
				switch {
				case err != nil:
					return err
				case f.json:
					return writeJSON(s.out, map[string]any{"token": text, "id": id, "subject": t.Subject, "roles": t.Roles, "expires": time.Now().Add(t.Life)})
				}
				file := cmp.Or(out, "FILE")
				if site != "" {
					s.tell("start the agent with: weir agent --site %s --root DIR --coordinator %s --token-file %s\n", site, co.Address(), file)
				}
				if out != "" {
					return keepSecret(out, text)
				}
				_, err = fmt.Fprintln(s.out, text)
				return err
			})
		},
	}
	f.add(c, "print it as JSON, with when it ends")
	fs := c.Flags()
	fs.StringVar(&site, "site", "", "for the agent of this `SITE`")
	fs.StringVar(&name, "name", "", "for the user of this `NAME`")
	fs.StringSliceVar(&roles, "role", nil, "what the user may do: `ROLES`, of read, submit, approve, admin")
	fs.StringVar(&out, "out", "", "write the token to `FILE`, which is new and for this user alone, instead of printing it")
	fs.StringVar(&life, "life", "365d", "how `LONG` it is good, as in 12h or 90d")
	c.AddCommand(tokenListCommand(s), tokenRevokeCommand(s))
	_ = c.RegisterFlagCompletionFunc("site", completeSites) // the flags are there
	_ = c.RegisterFlagCompletionFunc("role", completeWords(true, "read", "submit", "approve", "admin"))
	return c
}

func newToken(site, name, life string, roles []string) (transfer.NewToken, error) {
	var t transfer.NewToken
	d, err := unit.ParseDuration(life)
	switch {
	case err != nil || d <= 0:
		return t, fmt.Errorf("--life %s: name a time such as 12h or 90d", life)
	case site != "" && (name != "" || len(roles) > 0):
		return t, errors.New("--site is for an agent, --name and --role for a user: make two tokens")
	case site != "":
		return transfer.NewToken{Subject: "agent of " + site, Roles: []string{"weir.agent:" + site}, Life: time.Duration(d)}, nil
	case name == "" || len(roles) == 0:
		return t, errors.New("whom is it for? Name a site (--site B), or a user and roles (--name alice --role submit)")
	}
	t = transfer.NewToken{Subject: name, Life: time.Duration(d)}
	for _, r := range roles {
		t.Roles = append(t.Roles, "weir."+strings.TrimPrefix(r, "weir."))
	}
	return t, nil
}

// keepSecret writes a secret to a new file that only this user can read.
func keepSecret(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("--out %s: it is there already: name a new file, or remove it", path)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
	return errors.Join(err, f.Close())
}

func tokenListCommand(s streams) *cobra.Command {
	var f clientFlags
	var all bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the tokens that agents and users were given",
		Long: `Lists the tokens that count: for whom each one is, what it allows, who asked for it,
and when it ends. What their holders show is not kept anywhere.`,
		Example: "  weir coordinator token list\n  weir coordinator token list --all --json",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			return askList(&f, s, "tokens", func(co *client.Client) ([]transfer.Token, error) {
				tokens, err := co.Tokens(c.Context())
				if !all {
					tokens = slices.DeleteFunc(tokens, func(t transfer.Token) bool { return invalidity(&t) != "" })
				}
				return tokens, err
			}, printTokens)
		},
	}
	f.add(c, "print them as JSON")
	c.Flags().BoolVar(&all, "all", false, "also those that were revoked, or have ended in the last 30 days")
	return c
}

// invalidity is why a token is not valid any more, "" if it is.
func invalidity(t *transfer.Token) string {
	switch {
	case !t.Revoked.IsZero():
		return fmt.Sprintf("revoked by %s at %s", t.RevokedBy, toMinutes(t.Revoked))
	case !time.Now().Before(t.Expires):
		return "ended at " + toMinutes(t.Expires)
	}
	return ""
}

func toMinutes(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

func printTokens(w io.Writer, tokens []transfer.Token) error {
	if len(tokens) == 0 {
		_, err := fmt.Fprintln(w, "no tokens: make one with `weir coordinator token`")
		return err
	}
	t := newTable(w, "ID", "FOR", "MAY", "MADE", "BY", "ENDS")
	for _, k := range tokens {
		t.row(k.ID, k.Subject, strings.Join(k.Roles, " "), toMinutes(k.Made), k.By, cmp.Or(invalidity(&k), toMinutes(k.Expires)))
	}
	return t.Flush()
}

func tokenRevokeCommand(s streams) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "revoke ID...",
		Short: "Take tokens back",
		Long: `Takes tokens back before they end, by the names that weir coordinator token list tells.
The coordinator refuses them from then on; sessions of browsers that began with one end,
too, and an agent that has one gets no more to do. Its copies that run go on, and what
they come to is kept, until the agent is started again with another token; after a
minute others do what it had.`,
		Example: "  weir coordinator token revoke 4mxj2yq7c5kz3v6twnab5dhe2r",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			return f.call(func(co *client.Client) error {
				var tokens []transfer.Token
				for _, id := range args {
					t, err := co.RevokeToken(c.Context(), id)
					if err == nil && !f.json {
						_, err = fmt.Fprintf(s.out, "the token %s of %s does not count any more\n", line(t.ID), line(t.Subject))
					}
					if err != nil {
						return err
					}
					tokens = append(tokens, t)
				}
				if f.json {
					return writeJSON(s.out, map[string]any{"tokens": tokens})
				}
				return nil
			})
		},
	}
	f.add(c, "print them as JSON")
	return c
}

func linkCommand(s streams) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "link",
		Short: "Print an address that opens the coordinator's page, once",
		Long: `Prints the address of the coordinator's page for browsers. It ends in a code that
signs a browser in with the rights of the token that this command shows: once, within
ten minutes. Somebody else is better given a token of his own, which he pastes into the
page.

A coordinator's certificate is its own unless it was given one: the browser then warns,
and shows the same SHA-256 fingerprint as the pin that the coordinator printed.`,
		Example: "  weir coordinator link",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			return ask(&f, s, func(co *client.Client) (map[string]string, error) {
				code, err := co.PageCode(c.Context())
				return map[string]string{"url": co.URL() + "/#code=" + code}, err
			}, func(w io.Writer, link map[string]string) error {
				_, err := fmt.Fprintln(w, link["url"])
				return err
			})
		},
	}
	f.add(c, "print it as JSON")
	return c
}
