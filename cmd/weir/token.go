package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/durable"
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
		if err == nil && out != "" {
			err = newFile(out)
		}
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
				return durable.Write(out, []byte(secret+"\n"), 0o600)
			}
			_, err = fmt.Fprintln(s.out, secret)
			return err
		})
	})
	f.add(c)
	flagVars{
		"json": &f.json, "site": &site, "name": &name, "role": commas{&roles}, "out": &out, "life": &parsed{"365d", parseTime(&life, 1)},
	}.add(c)
	c.AddCommand(tokenListCommand(s), tokenRevokeCommand(s))
	return c
}

func tokenListCommand(s streams) *cobra.Command {
	var all bool
	c := listCommand(s, "tokens", "list", cobra.NoArgs,
		func(ctx context.Context, co *client.Client, _ []string) ([]transfer.Token, error) {
			tokens, err := co.Tokens(ctx)
			return slices.DeleteFunc(tokens, func(t transfer.Token) bool { return !all && text.Invalidity(&t) != "" }), err
		}, text.Tokens)
	flagVars{"all": &all}.add(c)
	return c
}

func tokenRevokeCommand(s streams) *cobra.Command {
	return eachCommand(s, "tokens", "revoke ID...", cobra.MinimumNArgs(1), (*client.Client).RevokeToken, func(t transfer.Token) string {
		return fmt.Sprintf("the token %s of %s is revoked", line(t.ID), line(t.Subject))
	})
}

func linkCommand(s streams) *cobra.Command {
	return queryCommand(s, "link", cobra.NoArgs,
		func(ctx context.Context, co *client.Client, _ []string) (map[string]string, error) {
			code, err := co.PageCode(ctx)
			return map[string]string{"url": co.URL() + "/#code=" + code}, err
		}, func(w io.Writer, link map[string]string) error {
			_, err := fmt.Fprintln(w, link["url"])
			return err
		})
}
