package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/client"
	"weir/transfer/text"
)

func siteCommand(s streams) *cobra.Command {
	list := listCommand(s, "sites", "list", cobra.NoArgs,
		func(ctx context.Context, co *client.Client, _ []string) ([]catalog.Site, error) { return co.Sites(ctx) }, text.Sites)
	show := queryCommand(s, "print it as JSON", "show NAME", cobra.ExactArgs(1),
		func(ctx context.Context, co *client.Client, args []string) (text.Site, error) {
			return text.FindSite(ctx, co, args[0])
		},
		func(w io.Writer, site text.Site) error { return site.Print(w) })
	return group("site", siteAddCommand(s), list, show, siteRemoveCommand(s))
}

func siteAddCommand(s streams) *cobra.Command {
	var site transfer.NewSite
	var secret string
	c := queryCommand(s, "print the site as JSON", "add NAME --url URL", cobra.ExactArgs(1),
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
		switch {
		case site.URL == "":
			return usageError(c, errors.New("name the URL of the site: --url https://HOST:PORT/FOLDER"))
		case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
			return usagef("--url %s: write it as https://HOST:PORT/FOLDER", line(site.URL))
		case u.User != nil:
			return usagef("--url: leave user and password out: a token is given with --site-token-file")
		}
		if site.Token, err = fileText(secret); err != nil {
			return fmt.Errorf("--site-token-file: %w", err)
		}
		return nil
	}
	fs := c.Flags()
	fs.StringVar(&site.URL, "url", "", "`URL` of the folder with the files")
	fs.StringVar(&secret, "site-token-file", "", "send the bearer token in `FILE` to the site")
	fs.StringVar(&site.Pin, "pin", "", "`SHA256` of the site's certificate, if that is self-signed")
	fs.BoolVar(&site.Lend, "lend-token", false,
		"give the token itself to agents and other sites that copy from or to this one, for its lifetime; without, they get macaroons if the "+
			"site issues them")
	fs.StringSliceVar(&site.Servers, "servers", nil, "also send the token to these data servers, when the site redirects to them: `HOST`, "+
		"HOST:PORT or *.DOMAIN")
	fs.IntVar(&site.Max, "max", 0, "at most `N` copies at once (default: what the links carry)")
	return c
}

func siteRemoveCommand(s streams) *cobra.Command {
	running := false
	return queryCommand(s, "print its name as JSON", "remove NAME", cobra.ExactArgs(1),
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
