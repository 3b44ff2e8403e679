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
	c := &cobra.Command{
		Use:   "calibrate TARGET",
		Short: "Compare built-in clients with a real client program",
		Long: `Compare built-in clients with a real client program.

It runs the real program (xrdcp, curl or gfal-copy: one process for each file) and weir's own
clients on the same service, files and number of clients, in short alternating steps, and
compares them: throughput, files/s, transfer time, CPU of clients and server for each file
and byte, and requests on the wire. Weir's clients run at full speed and, with pauses, at the
program's rate, because a busy server needs less CPU for a file than an idle one.

It reads 16 files that it makes for the purpose and removes afterwards, or those of --list,
or, where it may not write, the files below the target. Where the target is not encrypted,
three files of each side go through a relay on this machine that counts the requests.

The results are run directories with reports, calibration.json and calibration.txt. Ctrl-C
ends early and compares what was measured. Any key of a scenario can be set, for both sides:
workload.think, auth.method.`,
		Example: `  weir calibrate root://127.0.0.1:1094//data
  weir calibrate root://redirector.example.org//store/test --clients 1,10,50 --duration 5s
  weir calibrate root://127.0.0.1:1094//data --kind write --size 10MiB
  weir calibrate root://127.0.0.1:1094//data --plain --rounds 5
  weir calibrate http://127.0.0.1:8080/data --client gfal-copy
  weir calibrate https://se.example.org/data --list files.txt --set auth.method=token --set auth.token_file=t`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f.Target = args[0]
			if err := f.Check(); err != nil {
				return usage(err)
			}
			in, release := s.interruptible(c.Context(), s.err)
			defer release()
			return afterSignal(in.Finish, calibrate(in, f, asJSON, s))
		},
	}
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
