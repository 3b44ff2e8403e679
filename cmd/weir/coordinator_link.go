package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func linkCommand(s streams) *cobra.Command {
	var f coordFlags
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
			return f.with(func(d *desk) error {
				code, err := d.PageCode(c.Context())
				if err != nil {
					return err
				}
				link := d.at + "/#code=" + code
				if f.json {
					return writeJSON(s.out, map[string]any{"url": link})
				}
				_, err = fmt.Fprintln(s.out, link)
				return err
			})
		},
	}
	f.add(c, "print it as JSON")
	return c
}
