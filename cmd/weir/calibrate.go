package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"weir/internal/screen"
	"weir/results"
	"weir/run"
	"weir/run/calibration"
)

func calibrateCommand(s streams) *cobra.Command {
	var f calibration.Options
	var asJSON bool
	c := command("calibrate TARGET", cobra.ExactArgs(1), func(c *cobra.Command, args []string) error {
		f.Target = args[0]
		if err := f.Check(); err != nil {
			return usage(err)
		}
		in, release := s.interruptible(c.Context(), s.err)
		defer release()
		return afterSignal(in.Finish, calibrate(in, f, asJSON, s))
	})
	fs := c.Flags()
	fs.StringVar(&f.Client, "client", "", "real `PROGRAM`: xrdcp, curl or gfal-copy (default: xrdcp for root://, curl for http://)")
	fs.StringVar(&f.Kind, "kind", "read", "operation of the clients: `read` or write")
	fs.StringVar(&f.Clients, "clients", "1,8", "clients of each side, as in `1,8`")
	fs.StringVar(&f.Duration, "duration", "2s", "measurement time of each step, as in `2s`")
	fs.IntVar(&f.Rounds, "rounds", 3, "measure each side with each number of clients `N` times")
	fs.StringVar(&f.Size, "size", "1MiB", "`SIZE` of the files that are made or written")
	fs.IntVar(&f.Files, "files", 16, "make `N` files for reading")
	fs.StringVar(&f.List, "list", "", "read the files in `FILE`: paths below the target, one a line")
	fs.BoolVar(&f.Plain, "plain", false, "root://: read and write without page checksums on both sides (xrdcp with XRD_CPUSEPGWRTRD=0)")
	setFlag(c, &f.Sets)
	outFlag(c, &f.Dir, "calibrate-NAME-TIME")
	jsonFlag(c, &asJSON, "print calibration.json instead of the text")
	quietFlag(c, &s.quiet)
	return c
}

// calibrate measures both sides, and shows the comparison.
func calibrate(in run.Interrupts, o calibration.Options, asJSON bool, s streams) error {
	r, dir, sides, err := calibration.Run(calibration.Config{Options: o, Version: version(), Console: s.console(), Interrupts: in})
	if r == nil {
		return err
	}
	if asJSON {
		err = errors.Join(err, ignoreUnread(r.WriteJSON(s.out)))
	} else {
		err = errors.Join(err, ignoreUnread(r.WriteText(s.out, screen.Width(s.out))))
		report := func(side int) string { return filepath.Join(sides[side], results.ReportFile) }
		_, unread := fmt.Fprintf(s.out, "\ndirectory  %s\nreports    %s, %s\n", dir, report(0), report(1))
		err = errors.Join(err, ignoreUnread(unread))
	}
	if err == nil && !r.Valid {
		return exit{code: exitInvalid}
	}
	return err
}
