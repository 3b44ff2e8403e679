package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"weir/internal/say"
)

func explainCommand(s streams) *cobra.Command {
	var f coordFlags
	c := &cobra.Command{
		Use:   "explain REQUEST [FILE]",
		Short: "Say why the files of a request do not move now",
		Long: `Says what the files of a request are waiting for: approval, a site that has them, the
limit of a link and why it is what it is, space, the time of the next attempt and
what became of the last one. With the name of a file, it is about that one.`,
		Example: "  weir transfer explain 12\n  weir transfer explain 12 /store/run1/f7.root",
		Args:    cobra.RangeArgs(1, 2), ValidArgsFunction: completeRequests(openRequests),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := requestOf(c, args[0])
			if err != nil {
				return err
			}
			file := ""
			if len(args) == 2 {
				file = args[1]
			}
			return f.with(func(d *desk) error {
				e, err := d.Explain(c.Context(), id, file)
				if err != nil {
					return err
				}
				if f.json {
					return writeJSON(s.out, e)
				}
				counts := ""
				if e.Request.Count.Files > 0 {
					counts = ": " + inStates(&e.Request.Count)
				}
				tell(s.out, "", "request %d is %s%s", e.Request.ID, e.Request.Status, counts)
				for _, r := range e.Reasons {
					which := say.Plural(int(r.Files), "file")
					if r.Files == 1 && r.File != "" {
						which = r.File
					}
					tell(s.out, "  ", "%s: %s", which, r.Text)
				}
				if len(e.Reasons) == 0 && e.Request.Status.Ended() {
					_, err = fmt.Fprintf(s.out, "it has ended: weir transfer manifest %d has its files\n", id)
				}
				return err
			})
		},
	}
	f.add(c, "print it as JSON")
	return c
}
