package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/unit"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/client"
)

// siteCommand is about where datasets can be.
func siteCommand(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "site",
		Short: "The sites that datasets can be at",
		Long: `Sites with an agent add themselves when it starts (weir agent). Others are added by
their URL: any endpoint that speaks HTTP third-party copy, such as XRootD, dCache,
StoRM or EOS. The coordinator then has these copy among each other.`,
		Example: `  weir site list
  weir site add cern --url https://eos.example.org:8444/eos/data --site-token-file cern.token`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(siteAddCommand(s), siteListCommand(s), siteShowCommand(s), siteRemoveCommand(s))
	return c
}

func siteAddCommand(s streams) *cobra.Command {
	var f clientFlags
	var new transfer.NewSite
	var secret string
	c := &cobra.Command{
		Use:   "add NAME --url URL",
		Short: "Add a site without an agent, or change it",
		Long: `Adds an endpoint that speaks HTTP third-party copy. Files of a dataset are looked for
below the URL. The token is kept encrypted by the coordinator, shown to no user, and
sent to that endpoint alone. An agent, or another site, that reads from it or writes to
it gets a macaroon for one folder and some hours, where the site makes them. Where it
does not, the coordinator has the site push and pull by itself, if it can; else
--lend-token gives them the token: whoever has it can then do what the token allows.`,
		Example: `  weir site add cern --url https://eos.example.org:8444/eos/data --site-token-file cern.token
  weir site add lab --url https://127.0.0.1:1094/data --pin 8f3c... --max 10`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			new.Name = args[0]
			u, err := url.Parse(new.URL)
			switch {
			case new.URL == "":
				return usageError(c, errors.New("where is it? Name its URL: --url https://HOST:PORT/FOLDER"))
			case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
				return exit{exitUsage, fmt.Errorf("--url %s: write it as https://HOST:PORT/FOLDER", line(new.URL))}
			case u.User != nil:
				return exit{exitUsage, errors.New("--url: leave user and password out: a token is given with --site-token-file")}
			}
			if new.Token, err = fileText(secret); err != nil {
				return fmt.Errorf("--site-token-file: %w", err)
			}
			return ask(&f, s, func(co *client.Client) (catalog.Site, error) { return co.AddSite(c.Context(), new) },
				func(w io.Writer, site catalog.Site) error {
					_, err := fmt.Fprintf(w, "site %s is at %s\n", line(site.Name), line(site.URL))
					return err
				})
		},
	}
	f.add(c, "print the site as JSON")
	fs := c.Flags()
	fs.StringVar(&new.URL, "url", "", "`URL` of the folder below which the files are")
	fs.StringVar(&secret, "site-token-file", "", "show the bearer token in `FILE` to the site")
	fs.StringVar(&new.Pin, "pin", "", "`SHA256` of the site's certificate, if that is self-made")
	fs.BoolVar(&new.Lend, "lend-token", false, "give the token itself to agents and other sites that copy from or to this one, for as long as it lives; without, they get macaroons where the site makes them")
	fs.StringSliceVar(&new.Servers, "servers", nil, "show the token to these data servers, too, when the site redirects to them: `HOST`, HOST:PORT or *.DOMAIN")
	fs.IntVar(&new.Max, "max", 0, "at most `N` copies at once (default: what the links carry)")
	return c
}

func siteListCommand(s streams) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: "list", Short: "List sites", Example: "  weir site list\n  weir site list --json", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return askList(&f, s, "sites", func(co *client.Client) ([]catalog.Site, error) { return co.Sites(c.Context()) }, printSites)
		},
	}
	f.add(c, "print them as JSON")
	return c
}

func printSites(w io.Writer, sites []catalog.Site) error {
	if len(sites) == 0 {
		_, err := fmt.Fprintln(w, "no sites: start an agent with `weir agent`, or add an endpoint with `weir site add`")
		return err
	}
	t := newTable(w, "SITE", "KIND", "STATE", "FREE", "SEEN", "DOOR")
	for _, site := range sites {
		t.row(site.Name, site.Kind, siteState(&site), freeSpace(site.Free), lastSeen(site.Seen), cmp.Or(site.URL, "none: it only dials out"))
	}
	return t.Flush()
}

func siteState(site *catalog.Site) string {
	text := "up"
	if !site.Up {
		text = "down"
	}
	if site.Problem != "" {
		text += ": " + site.Problem
	}
	return text
}

func freeSpace(bytes int64) string {
	if bytes < 0 {
		return "not known"
	}
	return unit.Bytes(float64(bytes))
}

func lastSeen(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return unit.Seconds(max(time.Since(t).Round(time.Second), 0).Seconds()) + " ago"
}

func siteShowCommand(s streams) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: "show NAME", Short: "Show a site, and the links to and from it",
		Long:    "Shows a site, and of the links to and from it how many copies they carry at once and why.",
		Example: "  weir site show A", Args: cobra.ExactArgs(1), ValidArgsFunction: completeOneSite,
		RunE: func(c *cobra.Command, args []string) error {
			return ask(&f, s, func(co *client.Client) (siteShown, error) { return findSite(c.Context(), co, args[0]) }, printSite)
		},
	}
	f.add(c, "print it as JSON")
	return c
}

// siteShown is a site with the links to and from it.
type siteShown struct {
	Site  catalog.Site    `json:"site"`
	Links []transfer.Link `json:"links"`
}

func findSite(ctx context.Context, co *client.Client, name string) (siteShown, error) {
	out := siteShown{Links: []transfer.Link{}}
	sites, err := co.Sites(ctx)
	if err != nil {
		return out, err
	}
	i := slices.IndexFunc(sites, func(s catalog.Site) bool { return s.Name == name })
	if i < 0 {
		return out, fmt.Errorf("there is no site %s: %s", line(name), existing(sites))
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

func printSite(w io.Writer, s siteShown) error {
	if err := printSites(w, []catalog.Site{s.Site}); err != nil || len(s.Links) == 0 {
		return err
	}
	_, _ = fmt.Fprintln(w) // Flush returns the error
	t := newTable(w, "LINK", "MOVING", "AT ONCE", "SPEED", "SUCCESS", "WHY")
	for _, l := range s.Links {
		t.row(l.Source+" -> "+l.Dest, l.Active, l.Limit, unit.Bytes(l.Rate)+"/s", unit.Percent(l.Success), l.Why)
	}
	return t.Flush()
}

// existing names some of the sites that there are.
func existing(sites []catalog.Site) string {
	const most = 10
	var names []string
	for _, s := range sites {
		names = append(names, line(s.Name))
	}
	switch n := len(names); {
	case n == 0:
		return "there is none yet"
	case n == 1:
		return "there is " + names[0]
	case n > most:
		return fmt.Sprintf("there are %s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return "there are " + strings.Join(names, ", ")
}

func siteRemoveCommand(s streams) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: "remove NAME", Short: "Forget a site and what it has; no file is touched",
		Example: "  weir site remove A", Args: cobra.ExactArgs(1), ValidArgsFunction: completeOneSite,
		RunE: func(c *cobra.Command, args []string) error {
			runs := false
			return ask(&f, s, func(co *client.Client) (removed, error) {
				sites, err := co.Sites(c.Context())
				if err != nil {
					return removed{}, err
				}
				runs = slices.ContainsFunc(sites, func(s catalog.Site) bool { return s.Name == args[0] && s.Up && s.Kind == catalog.AgentSite })
				return removed{args[0]}, co.RemoveSite(c.Context(), args[0])
			}, func(w io.Writer, r removed) error {
				text := fmt.Sprintf("site %s is forgotten; its files are where they were\n", line(r.Name))
				if runs {
					text += "its agent runs: until that is ended the site comes back, without its datasets\n"
				}
				_, err := io.WriteString(w, text)
				return err
			})
		},
	}
	f.add(c, "print its name as JSON")
	return c
}

// removed is what commands that remove something print as JSON.
type removed struct {
	Name string `json:"removed"`
}
