package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/loadtest/analysis"
	"weir/loadtest/analysis/campaign"
	"weir/loadtest/export"
	"weir/loadtest/results"
	"weir/loadtest/run"
)

// An exporter is weir export.
type exporter struct {
	streams
	exportFlags
	follow                   bool
	prometheus, csv, grafana string
	since                    time.Time
}

func exportCommand(s streams) *cobra.Command {
	e := exporter{streams: s}
	c := command("export RUN|CAMPAIGN", cobra.MaximumNArgs(1), func(c *cobra.Command, args []string) error {
		in, release := e.interruptible(c.Context(), io.Discard, run.Effects{})
		defer release()
		err := e.run(in.Finish, args)
		if errors.As(err, new(*run.UsageError)) {
			err = usage(err)
		}
		return afterSignal(in.Finish, err)
	})
	c.PreRunE = existing("a run directory")
	since := func(text string) (err error) {
		if e.since, err = time.Parse(time.RFC3339Nano, text); err != nil {
			err = errors.New("use a time such as 2026-03-01T12:00:00Z")
		}
		return err
	}
	flagVars{"prometheus": &e.prometheus, "csv": &e.csv, "grafana": &e.grafana, "follow": &e.follow, "since": since}.add(c)
	e.add(c)
	return c
}

func (e *exporter) run(ctx context.Context, args []string) error {
	if e.grafana != "" {
		dashboard := func(w io.Writer) error { _, err := io.WriteString(w, export.Grafana()); return err }
		if err := e.file(e.grafana, dashboard); err != nil || len(args) == 0 {
			return err
		}
	}
	if len(args) == 0 {
		return usagef("name the run to export. See: weir export --help")
	}
	lines := "" // file of line protocol
	if e.Influx != "" && !strings.HasPrefix(e.Influx, "http://") && !strings.HasPrefix(e.Influx, "https://") {
		lines, e.Influx = e.Influx, ""
	}
	if e.Metrics != "" && !e.follow {
		return usagef("--metrics serves the metrics of a run under way: it needs --follow")
	}
	out, err := e.open(ctx, analysis.Analyze, e.err, e.err)
	if err != nil {
		return err
	}
	defer out.Close()
	if e.prometheus+lines+e.csv+e.grafana+e.RemoteWrite+e.Influx+e.Metrics == "" {
		return usagef("name a destination: at least one of --prometheus, --remote-write, --influx, --csv, --grafana, --metrics")
	}
	dir := args[0]
	if !campaign.Is(dir) {
		return errors.Join(e.send(ctx, dir, lines, out), e.files(dir))
	}
	if e.prometheus+lines+e.csv != "" || e.follow {
		return usagef("%s is a campaign, whose runs can only be sent (--remote-write, --influx URL): for files, name one of its runs", dir)
	}
	c, err := campaign.Read(dir)
	if err != nil {
		return err
	}
	for i := range c.Runs {
		if one := filepath.Join(dir, c.Runs[i].Dir); results.IsRun(one) {
			err = errors.Join(err, e.send(ctx, one, "", out))
		}
	}
	return err
}

// file writes a file, or standard output.
func (e *exporter) file(name string, write func(io.Writer) error) error {
	if name == "-" {
		return write(e.out)
	}
	return writePage(name, write)
}

// send sends the values of a run, and waits for its end if that was requested.
func (e *exporter) send(ctx context.Context, dir, lines string, out *export.Destinations) error {
	return out.Send(ctx, dir, e.since, func() (err error) {
		if lines != "" {
			err = e.file(lines, func(w io.Writer) error { return export.Lines(ctx, w, dir, e.follow, analysis.Analyze) })
		}
		if e.follow && err == nil {
			_, err = export.Wait(ctx, dir)
		}
		return err
	})
}

// files writes the files that need the whole run.
func (e *exporter) files(dir string) (err error) {
	if e.prometheus != "" {
		err = e.file(e.prometheus, func(w io.Writer) error { return export.OpenMetrics(w, dir, analysis.Analyze) })
	}
	if e.csv == "" {
		return err
	}
	run, opening := results.Open(dir)
	if err = errors.Join(err, opening); opening != nil {
		return err
	}
	if making := os.MkdirAll(e.csv, 0o755); making != nil {
		return errors.Join(err, making)
	}
	_, _, written, reading := analysis.WriteTo(e.csv, run)
	if reading == nil {
		reading = written()
	}
	return errors.Join(err, reading)
}

// exportFlags set the destinations of a run's values while it goes on, and afterwards.
type exportFlags struct{ export.Config }

func (f *exportFlags) add(c *cobra.Command) {
	flagVars{
		"metrics": &f.Metrics, "remote-write": &f.RemoteWrite, "remote-write-auth": commas{&f.RemoteWriteAuth}, "influx": &f.Influx,
		"influx-auth": commas{&f.InfluxAuth},
	}.add(c)
}

// open opens the destinations. Errors in flags are run.UsageErrors.
func (f *exportFlags) open(ctx context.Context, find export.Finder, progress, problems io.Writer) (*export.Destinations, error) {
	f.Find, f.Progress, f.Problems = find, progress, problems
	out, err := export.Open(ctx, f.Config)
	if err != nil && !errors.As(err, new(*net.OpError)) {
		return nil, &run.UsageError{Err: err}
	}
	return out, listening("--metrics", err)
}
