package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/unit"
	"weir/transfer"
)

func tokenCommand(s streams) *cobra.Command {
	var f coordFlags
	var site, name, life string
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
		Example: `  weir coordinator token --site B > b.token
  weir coordinator token --name alice --role submit --life 90d > alice.token
  weir coordinator token list`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t, err := newToken(site, name, life, roles)
			if err != nil {
				return exit{exitUsage, fmt.Errorf("%w\nSee: %s --help", err, c.CommandPath())}
			}
			return f.with(func(d *desk) error {
				text, id, err := d.NamedToken(c.Context(), t)
				switch {
				case err != nil:
					return err
				case f.json:
					return writeJSON(s.out, map[string]any{"token": text, "id": id, "subject": t.Subject, "roles": t.Roles, "expires": time.Now().Add(t.Life)})
				}
				if site != "" {
					s.tell("start the agent with: weir agent --site %s --root DIR --coordinator %s --token-file FILE\n", site, d.name())
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
