package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"weir/results/campaign"
)

func runCommand(s streams, signals signalSource) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [SCENARIO.yaml ...]",
		Short: "Drive a service with virtual clients and say what it carries",
		Long: `Steps virtual clients up (and down) against a service, watches both sides, and
writes a run directory with a report. Without a scenario the files below the
target are listed and read; without a target, too, weir starts its own server.

A scenario with repeat or matrix, or several scenarios, are a campaign: many runs,
in blocks that have each variant once, in a folder of their own, compared at the
end. --resume goes on with a run or a campaign that was broken off.

Ctrl-C ends the run early and still reports (exit code 130); a second one stops
at once. weir help exit-codes lists the exit codes.`,
		Example: `  weir run
  weir run --target http://127.0.0.1:8080/data --clients 1,10,100 --hold 10s
  weir run --target file:///scratch --set workload.kind=write --set workload.size=1MiB --set load.clients=4
  weir run scenario.yaml --set load.hold=30s --out runs/new-disks
  weir run scenario.yaml --watch                      # and look on in the browser
  weir run scenario.yaml --on htcondor --workers 50   # clients on a batch system's machines
  weir run old.yaml new.yaml --repeat 5 --out runs/old-and-new
  weir run --resume runs/old-and-new`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) (err error) {
			s := f.withStream(s)
			defer func() { err = s.stream.end(err) }()
			if f.resume != "" {
				return resume(c, args, f, s, signals)
			}
			all, err := f.readAll(args)
			if err != nil {
				return f.watch.apart(args, err)
			}
			return f.interruptible(c.Context(), s, signals, func(in interrupts) error {
				if isCampaign(all) {
					if f.apart.part+f.apart.begin != "" {
						return exit{exitUsage, errors.New("--part and --begin are of one run, and this is a campaign: start its runs one by one")}
					}
					return runCampaign(in, all, f, s)
				}
				return runScenario(in, all[0], f, s)
			})
		},
	}
	f.add(c)
	f.apart.add(c)
	f.addRun(c, &s, "go on with the run or campaign in `DIR` where it was broken off", jsonOfMaybe)
	return c
}

// resume goes on with what was broken off. What it shall do stands in its
// folder, so that no scenario, and no flag that changes one, is taken.
func resume(c *cobra.Command, args []string, f runFlags, s streams, signals signalSource) error {
	if err := f.onlyResume(c, args, "target", "clients", "hold", "repeat", "on", "workers", "part", "begin", "set", "var", "out"); err != nil {
		return err
	}
	return f.interruptible(c.Context(), s, signals, func(in interrupts) error {
		if !campaign.Is(f.resume) {
			return resumeRun(in, f.resume, f, s)
		}
		return resumeCampaign(in, f.resume, f, s)
	})
}

// outDir returns the directory to measure into: out, or a new one below runs.
func outDir(out, name string, now time.Time) string {
	if out != "" {
		return out
	}
	out = filepath.Join("runs", name+"-"+now.Format("20060102-150405"))
	for i := 2; ; i++ {
		if _, err := os.Lstat(out); err != nil {
			return out
		}
		out = filepath.Join("runs", fmt.Sprintf("%s-%s-%d", name, now.Format("20060102-150405"), i))
	}
}

// linkLatest points runs/latest at dir. It is a comfort: where links cannot be
// made, or another thing has that name, there is none.
func linkLatest(dir string) {
	link := filepath.Join("runs", "latest")
	if info, err := os.Lstat(link); err == nil && info.Mode()&os.ModeSymlink == 0 {
		return
	}
	if filepath.Dir(dir) == "runs" {
		_ = os.Remove(link)                      // it may not be there
		_ = os.Symlink(filepath.Base(dir), link) // comfort only
	}
}
