package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/client"
	"weir/transfer/text"
)

func siteCommand(s streams) *cobra.Command {
	list := listCommand(s, "sites", &cobra.Command{
		Use: "list", Short: "List sites", Example: "  weir site list\n  weir site list --json", Args: cobra.NoArgs,
	}, func(ctx context.Context, co *client.Client, _ []string) ([]catalog.Site, error) { return co.Sites(ctx) }, text.Sites)
	show := queryCommand(s, "print it as JSON", &cobra.Command{
		Use: "show NAME", Short: "Show a site and the links to and from it",
		Long:    "Show a site and the links to and from it: how many copies each link carries at once, and why.",
		Example: "  weir site show A", Args: cobra.ExactArgs(1), ValidArgsFunction: completeFirst(completeSites),
	}, func(ctx context.Context, co *client.Client, args []string) (text.Site, error) {
		return findSite(ctx, co, args[0])
	},
		func(w io.Writer, site text.Site) error { return site.Print(w) })
	return group(&cobra.Command{
		Use:   "site",
		Short: "Manage the sites between which datasets are transferred",
		Long: `Manage the sites between which datasets are transferred.

Sites with an agent add themselves when it starts (weir agent). Others are added by their
URL: any endpoint that supports HTTP third-party copy, such as XRootD, dCache, StoRM or EOS.
The coordinator has these copy among each other.`,
		Example: `  weir site list
  weir site add cern --url https://eos.example.org:8444/eos/data --site-token-file cern.token`,
	}, siteAddCommand(s), list, show, siteRemoveCommand(s))
}

func siteAddCommand(s streams) *cobra.Command {
	var site transfer.NewSite
	var secret string
	c := queryCommand(s, "print the site as JSON", &cobra.Command{
		Use:   "add NAME --url URL",
		Short: "Add a site without an agent, or change it",
		Long: `Add a site without an agent, or change it.

The URL is that of an endpoint that supports HTTP third-party copy; files of a dataset are
below it. The coordinator keeps the token encrypted, shows it to no user, and sends it to
that endpoint only. An agent or another site that reads from it or writes to it gets a
macaroon for one folder and some hours, if the site issues them. If it does not, the
coordinator has the site itself push and pull, if it can; otherwise --lend-token gives the
token to them, which allows them all that the token allows.`,
		Example: `  weir site add cern --url https://eos.example.org:8444/eos/data --site-token-file cern.token
  weir site add lab --url https://127.0.0.1:1094/data --pin 8f3c... --max 10`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		PreRunE: func(c *cobra.Command, args []string) error {
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
		},
	}, func(ctx context.Context, co *client.Client, _ []string) (catalog.Site, error) {
		return co.AddSite(ctx, site)
	},
		func(w io.Writer, site catalog.Site) error {
			_, err := fmt.Fprintf(w, "site %s is at %s\n", line(site.Name), line(site.URL))
			return err
		})
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

func findSite(ctx context.Context, co *client.Client, name string) (text.Site, error) {
	out := text.Site{Links: []transfer.Link{}}
	sites, err := co.Sites(ctx)
	if err != nil {
		return out, err
	}
	i := slices.IndexFunc(sites, func(s catalog.Site) bool { return s.Name == name })
	if i < 0 {
		var names []string
		for _, s := range sites {
			names = append(names, line(s.Name))
		}
		more := ""
		if n := len(names); n > 10 {
			names, more = names[:10], fmt.Sprintf(" and %d more", n-10)
		}
		if len(names) == 0 {
			names = []string{"none yet"}
		}
		return out, fmt.Errorf("there is no site %s; there are: %s%s", line(name), strings.Join(names, ", "), more)
	}
	out.Site = sites[i]
	links, err := co.Links(ctx)
	for _, l := range links {
		if l.Source == name || l.Dest == name {
			out.Links = append(out.Links, l)
		}
	}
	return out, err
}

func siteRemoveCommand(s streams) *cobra.Command {
	running := false
	return queryCommand(s, "print its name as JSON", &cobra.Command{
		Use: "remove NAME", Short: "Remove a site and its replicas from the catalog; its files stay",
		Example: "  weir site remove A", Args: cobra.ExactArgs(1), ValidArgsFunction: completeFirst(completeSites),
	}, func(ctx context.Context, co *client.Client, args []string) (removed, error) {
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
