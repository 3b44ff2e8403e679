package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weir/catalog"
	"weir/internal/unit"
	"weir/transfer"
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
	var f coordFlags
	var new transfer.NewSite
	var secret string
	c := &cobra.Command{
		Use:   "add NAME --url URL",
		Short: "Add a site without an agent, or change it",
		Long: `Adds an endpoint that speaks HTTP third-party copy. Files of a dataset are looked for
below the URL. The token is kept encrypted by the coordinator and shown to no user; it
is sent to that endpoint, and for a copy to who reads from it or writes to it: the
agent, or the other endpoint (TransferHeaderAuthorization). Give it no more rights, and
no longer a life, than these need.`,
		Example: `  weir site add cern --url https://eos.example.org:8444/eos/data --site-token-file cern.token
  weir site add lab --url https://127.0.0.1:1094/data --pin 8f3c... --max 10`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			new.Name = args[0]
			u, err := url.Parse(new.URL)
			switch {
			case new.URL == "":
				return exit{exitUsage, fmt.Errorf("where is it? Name its URL: --url https://HOST:PORT/FOLDER\nSee: %s --help", c.CommandPath())}
			case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
				return exit{exitUsage, fmt.Errorf("--url %s: write it as https://HOST:PORT/FOLDER", line(new.URL))}
			case u.User != nil:
				return exit{exitUsage, errors.New("--url: leave user and password out: a token is given with --site-token-file")}
			}
			if new.Token, err = fileText(secret); err != nil {
				return fmt.Errorf("--site-token-file: %w", err)
			}
			return f.with(func(d *desk) error {
				site, err := d.AddSite(c.Context(), new)
				switch {
				case err != nil:
					return err
				case f.json:
					return writeJSON(s.out, site)
				}
				_, err = fmt.Fprintf(s.out, "site %s is at %s\n", line(site.Name), line(site.URL))
				return err
			})
		},
	}
	f.add(c, "print the site as JSON")
	fs := c.Flags()
	fs.StringVar(&new.URL, "url", "", "`URL` of the folder below which the files are")
	fs.StringVar(&secret, "site-token-file", "", "show the bearer token in `FILE` to the site")
	fs.StringVar(&new.Pin, "pin", "", "`SHA256` of the site's certificate, if that is self-made")
	fs.IntVar(&new.Max, "max", 0, "at most `N` copies at once (default: what the links carry)")
	return c
}

func siteListCommand(s streams) *cobra.Command {
	var f coordFlags
	c := &cobra.Command{
		Use: "list", Short: "List sites", Example: "  weir site list\n  weir site list --json", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.with(func(d *desk) error {
				sites, err := d.Sites(c.Context())
				if err != nil {
					return err
				}
				return printList(s.out, f.json, "sites", sites, tellSites)
			})
		},
	}
	f.add(c, "print them as JSON")
	return c
}

func tellSites(w io.Writer, sites []catalog.Site) error {
	if len(sites) == 0 {
		_, err := fmt.Fprintln(w, "no sites: start an agent with `weir agent`, or add an endpoint with `weir site add`")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "SITE\tKIND\tSTATE\tFREE\tSEEN\tDOOR") // Flush tells
	for _, site := range sites {
		door := line(site.URL)
		if door == "" {
			door = "none: it only dials out"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", line(site.Name), line(site.Kind), siteState(&site), free(site.Free), seen(site.Seen), door)
	}
	return t.Flush()
}

func siteState(site *catalog.Site) string {
	text := "up"
	if !site.Up {
		text = "down"
	}
	if site.Problem != "" {
		text += ": " + line(site.Problem)
	}
	return text
}

func free(bytes int64) string {
	if bytes < 0 {
		return "not known"
	}
	return unit.Bytes(float64(bytes))
}

func seen(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return unit.Seconds(max(time.Since(t).Round(time.Second), 0).Seconds()) + " ago"
}

func siteShowCommand(s streams) *cobra.Command {
	var f coordFlags
	c := &cobra.Command{
		Use: "show NAME", Short: "Show a site, and the links to and from it",
		Long:    "Shows a site, and of the links to and from it how many copies they carry at once and why.",
		Example: "  weir site show A", Args: cobra.ExactArgs(1), ValidArgsFunction: completeOneSite,
		RunE: func(c *cobra.Command, args []string) error {
			return f.with(func(d *desk) error { return showSite(c.Context(), d, args[0], f.json, s) })
		},
	}
	f.add(c, "print it as JSON")
	return c
}

// siteShown is what weir site show prints as JSON.
type siteShown struct {
	Site  catalog.Site    `json:"site"`
	Links []transfer.Link `json:"links"`
}

func showSite(ctx context.Context, d *desk, name string, asJSON bool, s streams) error {
	sites, err := d.Sites(ctx)
	if err != nil {
		return err
	}
	var out siteShown
	var names []string
	for _, site := range sites {
		if site.Name == name {
			out.Site = site
		}
		names = append(names, site.Name)
	}
	if out.Site.Name == "" {
		return fmt.Errorf("there is no site %s: %s", line(name), choices(names, "there is none yet"))
	}
	links, err := d.Links(ctx)
	if err != nil {
		return err
	}
	out.Links = []transfer.Link{}
	for _, l := range links {
		if l.Source == name || l.Dest == name {
			out.Links = append(out.Links, l)
		}
	}
	if asJSON {
		return writeJSON(s.out, out)
	}
	if err := tellSites(s.out, []catalog.Site{out.Site}); err != nil || len(out.Links) == 0 {
		return err
	}
	return tellLinks(s.out, out.Links)
}

func tellLinks(w io.Writer, links []transfer.Link) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "\nLINK\tMOVING\tAT ONCE\tSPEED\tSUCCESS\tWHY") // Flush tells
	for _, l := range links {
		_, _ = fmt.Fprintf(t, "%s -> %s\t%d\t%d\t%s/s\t%s\t%s\n", line(l.Source), line(l.Dest), l.Active, l.Limit, unit.Bytes(l.Rate), unit.Percent(l.Success), line(l.Why))
	}
	return t.Flush()
}

func siteRemoveCommand(s streams) *cobra.Command {
	var f coordFlags
	c := &cobra.Command{
		Use: "remove NAME", Short: "Forget a site and what it has; no file is touched",
		Example: "  weir site remove A", Args: cobra.ExactArgs(1), ValidArgsFunction: completeOneSite,
		RunE: func(c *cobra.Command, args []string) error {
			return f.with(func(d *desk) error {
				sites, err := d.Sites(c.Context())
				if err != nil {
					return err
				}
				if err := d.RemoveSite(c.Context(), args[0]); err != nil {
					return err
				}
				if f.json {
					return writeJSON(s.out, map[string]string{"removed": args[0]})
				}
				text := fmt.Sprintf("site %s is forgotten; its files are where they were\n", line(args[0]))
				if slices.ContainsFunc(sites, func(s catalog.Site) bool { return s.Name == args[0] && s.Up && s.Kind == "agent" }) {
					text += "its agent runs: until that is ended the site comes back, without its datasets\n"
				}
				_, err = fmt.Fprint(s.out, text)
				return err
			})
		},
	}
	f.add(c, "print its name as JSON")
	return c
}

// choices says which names there are, a few of them.
func choices(names []string, none string) string {
	const most = 10
	if len(names) == 0 {
		return none
	}
	text := "there are "
	if len(names) == 1 {
		text = "there is "
	}
	for i, n := range names[:min(len(names), most)] {
		if i > 0 {
			text += ", "
		}
		text += line(n)
	}
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}
