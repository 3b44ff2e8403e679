package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"weir/transfer"
	"weir/transfer/client"
	"weir/transfer/settings"
	"weir/transfer/text"
)

func tokenCommand(s streams) *cobra.Command {
	var f clientFlags
	var site, name, out string
	life := 365 * 24 * time.Hour
	var roles []string
	c := command("token {--site SITE | --name NAME --role ROLES}", cobra.NoArgs, func(c *cobra.Command, _ []string) error {
		t, err := settings.NewToken(site, name, roles)
		t.Life = life
		if err != nil {
			return usageError(c, err)
		}
		return f.call(func(co *client.Client) error {
			secret, id, err := co.NamedToken(c.Context(), t)
			switch {
			case err != nil:
				return err
			case f.json:
				about := map[string]any{"token": secret, "id": id, "subject": t.Subject, "roles": t.Roles, "expires": time.Now().Add(t.Life)}
				return writeJSON(s.out, about)
			}
			if site != "" {
				s.printErr("start the agent with: weir agent --site %s --root DIR --coordinator %s --token-file %s\n", site, co.Address(),
					cmp.Or(out, "FILE"))
			}
			if out != "" {
				return writeSecret(out, secret)
			}
			_, err = fmt.Fprintln(s.out, secret)
			return err
		})
	})
	f.add(c, "print it as JSON, with the time of its end")
	fs := c.Flags()
	fs.StringVar(&site, "site", "", "for the agent of this `SITE`")
	fs.StringVar(&name, "name", "", "for the user of this `NAME`")
	fs.StringSliceVar(&roles, "role", nil, "`ROLES` of the user: read, submit, approve, admin")
	fs.StringVar(&out, "out", "", "write the token to the new `FILE`, which only this user can read, instead of printing it")
	parsedFlag(fs, "life", "365d", "`LIFETIME`, as in 12h or 90d", parseTime(&life, 1))
	c.AddCommand(tokenListCommand(s), tokenRevokeCommand(s))
	return c
}

// writeSecret writes a secret to a new file that only this user can read.
func writeSecret(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("--out %s exists already: name a new file, or remove it", path)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
	return errors.Join(err, f.Close())
}

func tokenListCommand(s streams) *cobra.Command {
	var all bool
	c := listCommand(s, "tokens", "list", cobra.NoArgs,
		func(ctx context.Context, co *client.Client, _ []string) ([]transfer.Token, error) {
			tokens, err := co.Tokens(ctx)
			return slices.DeleteFunc(tokens, func(t transfer.Token) bool { return !all && text.Invalidity(&t) != "" }), err
		}, text.Tokens)
	c.Flags().BoolVar(&all, "all", false, "also list those that were revoked, or have expired in the last 30 days")
	return c
}

func tokenRevokeCommand(s streams) *cobra.Command {
	return eachCommand(s, "tokens", "revoke ID...", cobra.MinimumNArgs(1),
		func(ctx context.Context, co *client.Client, id string) (transfer.Token, error) {
			return co.RevokeToken(ctx, id)
		},
		func(t transfer.Token) string {
			return fmt.Sprintf("the token %s of %s is revoked", line(t.ID), line(t.Subject))
		})
}

func linkCommand(s streams) *cobra.Command {
	return queryCommand(s, "print it as JSON", "link", cobra.NoArgs,
		func(ctx context.Context, co *client.Client, _ []string) (map[string]string, error) {
			code, err := co.PageCode(ctx)
			return map[string]string{"url": co.URL() + "/#code=" + code}, err
		}, func(w io.Writer, link map[string]string) error {
			_, err := fmt.Fprintln(w, link["url"])
			return err
		})
}
