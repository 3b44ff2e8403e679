package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"weir/internal/flagfile"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/client"
	"weir/transfer/text"
)

func siteCommand(s streams) *cobra.Command {
	list := listCommand(s, "sites", "list", cobra.NoArgs,
		func(ctx context.Context, co *client.Client, _ []string) ([]catalog.Site, error) { return co.Sites(ctx) }, text.Sites)
	show := queryCommand(s, "show NAME", cobra.ExactArgs(1),
		func(ctx context.Context, co *client.Client, args []string) (text.Site, error) {
			return text.FindSite(ctx, co, args[0])
		},
		func(w io.Writer, site text.Site) error { return site.Print(w) })
	return group("site", siteAddCommand(s), list, show, siteRemoveCommand(s))
}

func siteAddCommand(s streams) *cobra.Command {
	var site transfer.NewSite
	var secret string
	c := queryCommand(s, "add NAME --url URL", cobra.ExactArgs(1),
		func(ctx context.Context, co *client.Client, _ []string) (catalog.Site, error) {
			return co.AddSite(ctx, site)
		},
		func(w io.Writer, site catalog.Site) error {
			_, err := fmt.Fprintf(w, "site %s is at %s\n", line(site.Name), line(site.URL))
			return err
		})
	c.PreRunE = func(c *cobra.Command, args []string) error {
		site.Name = args[0]
		u, err := url.Parse(site.URL)
		wrong := err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http"
		if err := cmp.Or(
			flagfile.If(site.URL == "", "", "name the URL of the site: --url https://HOST:PORT/FOLDER"),
			flagfile.If(wrong, "", "--url %s: write it as https://HOST:PORT/FOLDER", line(site.URL)),
			flagfile.If(u != nil && u.User != nil, "", "--url: leave user and password out: a token is given with --site-token-file"),
		); err != nil {
			return usageError(c, err)
		}
		return usage(secretInto(&site.Token, "site-token-file", secret))
	}
	flagVars{
		"url": &site.URL, "site-token-file": &secret, "pin": &site.Pin, "lend-token": &site.Lend, "servers": commas{&site.Servers},
		"max": &site.Max,
	}.add(c)
	return c
}

func siteRemoveCommand(s streams) *cobra.Command {
	running := false
	return queryCommand(s, "remove NAME", cobra.ExactArgs(1),
		func(ctx context.Context, co *client.Client, args []string) (removed, error) {
			sites, err := co.Sites(ctx)
			if err != nil {
				return removed{}, err
			}
			running = slices.ContainsFunc(sites, func(s catalog.Site) bool { return s.Name == args[0] && s.Up && s.Kind == catalog.AgentSite })
			return removed{args[0]}, co.RemoveSite(ctx, args[0])
		}, func(w io.Writer, r removed) error {
			text := fmt.Sprintf("site %s is removed; its files stay where they are\n", line(r.Name))
			if running {
				text += "its agent runs: until it is stopped the site comes back, without its datasets\n"
			}
			_, err := io.WriteString(w, text)
			return err
		})
}
