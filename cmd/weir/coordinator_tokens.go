package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weir/transfer"
)

func tokenListCommand(s streams) *cobra.Command {
	var f coordFlags
	var all bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the tokens that agents and users were given",
		Long: `Lists the tokens that count: for whom each one is, what it allows, who asked for it,
and when it ends. What their holders show is not kept anywhere.`,
		Example: "  weir coordinator token list\n  weir coordinator token list --all --json",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.with(func(d *desk) error {
				found, err := d.Tokens(c.Context())
				if err != nil {
					return err
				}
				tokens := make([]transfer.Token, 0, len(found))
				for _, t := range found {
					if all || tokenState(&t, time.Now()) == "" {
						tokens = append(tokens, t)
					}
				}
				if f.json {
					return writeJSON(s.out, map[string]any{"tokens": tokens})
				}
				return tellTokens(s.out, tokens)
			})
		},
	}
	f.add(c, "print them as JSON")
	c.Flags().BoolVar(&all, "all", false, "also those that were revoked, or have ended in the last 30 days")
	return c
}

// tokenState is why a token does not count, "" if it does.
func tokenState(t *transfer.Token, now time.Time) string {
	switch {
	case !t.Revoked.IsZero():
		return fmt.Sprintf("revoked by %s at %s", line(t.RevokedBy), shortTime(t.Revoked))
	case !now.Before(t.Expires):
		return "ended at " + shortTime(t.Expires)
	}
	return ""
}

func shortTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

func tellTokens(w io.Writer, tokens []transfer.Token) error {
	if len(tokens) == 0 {
		_, err := fmt.Fprintln(w, "no tokens: make one with `weir coordinator token`")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "ID\tFOR\tMAY\tMADE\tBY\tENDS") // Flush tells
	for _, k := range tokens {
		ends := shortTime(k.Expires)
		if state := tokenState(&k, time.Now()); state != "" {
			ends = state
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", line(k.ID), line(k.Subject), line(strings.Join(k.Roles, " ")), shortTime(k.Made), line(k.By), ends)
	}
	return t.Flush()
}

func tokenRevokeCommand(s streams) *cobra.Command {
	var f coordFlags
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
			return f.with(func(d *desk) error {
				tokens := make([]transfer.Token, 0, len(args))
				for _, id := range args {
					t, err := d.RevokeToken(c.Context(), id)
					if err != nil {
						return err
					}
					tokens = append(tokens, t)
					if f.json {
						continue
					}
					if _, err := fmt.Fprintf(s.out, "the token %s of %s does not count any more\n", line(t.ID), line(t.Subject)); err != nil {
						return err
					}
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
