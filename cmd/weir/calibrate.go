package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"weir/internal/screen"
	"weir/loadtest/results"
	"weir/loadtest/run"
	"weir/loadtest/run/calibration"
)

func calibrateCommand(s streams) *cobra.Command {
	f := calibration.Options{Kind: "read", Clients: "1,8", Duration: "2s", Rounds: 3, Size: "1MiB", Files: 16}
	var asJSON bool
	c := command("calibrate TARGET", cobra.ExactArgs(1), func(c *cobra.Command, args []string) error {
		f.Target = args[0]
		if err := f.Check(); err != nil {
			return usage(err)
		}
		in, release := s.interruptible(c.Context(), s.err, run.LoadTestEffects())
		defer release()
		return afterSignal(in.Finish, calibrate(in, f, asJSON, s))
	})
	flagVars{
		"client": &f.Client, "kind": &f.Kind, "clients/c": &f.Clients, "duration/d": &f.Duration, "rounds": &f.Rounds, "size": &f.Size,
		"files": &f.Files, "list": &f.List, "plain": &f.Plain, "set": &f.Sets, "out/o": &f.Dir, "json": &asJSON, "quiet/q": &s.quiet,
	}.add(c)
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
		text := fmt.Sprintf("\ndirectory  %s\n", dir)
		if err == nil {
			text += fmt.Sprintf("reports    %s, %s\n", filepath.Join(sides[0], results.ReportFile), filepath.Join(sides[1], results.ReportFile))
		}
		_, unread := io.WriteString(s.out, text)
		err = errors.Join(err, ignoreUnread(unread))
	}
	if err == nil && !r.Valid {
		return exit{code: exitInvalid}
	}
	return err
}
