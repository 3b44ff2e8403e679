package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/analysis"
	"weir/export"
	"weir/results"
	"weir/run/campaign"
)

// exporter is weir export.
type exporter struct {
	streams
	exportFlags
	follow                   bool
	prometheus, csv, grafana string
	since                    string
}

func exportCommand(s streams, signals signalSource) *cobra.Command {
	e := exporter{streams: s}
	c := &cobra.Command{
		Use:   "export RUN|CAMPAIGN",
		Short: "Hand a run's numbers to Prometheus, InfluxDB, Grafana or a spreadsheet",
		Long: `Reads a run directory, also of a run that goes on or was killed, and hands its
numbers to other tools, each second with its own time. Several at once are fine;
of a campaign, all runs are sent.

  --prometheus FILE   OpenMetrics text, which promtool makes blocks of: for
                      runs older than what a Prometheus server still takes
  --remote-write URL  to Prometheus or what else takes its remote write 1.0
  --influx URL|FILE   to InfluxDB 1.x or 2.x, or as its line protocol
  --csv DIR           curve.csv, intervals.csv, hosts.csv and findings.json
  --grafana FILE      the dashboard; needs no RUN
  --metrics ADDRESS   a page for Prometheus to fetch, until the run is over

With --follow it goes on until the run is over. weir run and weir find take
--metrics, --remote-write and --influx, too. What could not be sent is said with
the time since when: --since sends only what is not older.`,
		Example: `  weir export runs/latest --remote-write http://127.0.0.1:9090/api/v1/write
  weir export runs/latest --influx 'http://127.0.0.1:8086/write?db=weir' --follow
  weir export runs/latest --prometheus run.om && promtool tsdb create-blocks-from openmetrics run.om data
  weir export runs/latest --influx - | gzip > run.lp.gz
  weir export --grafana weir.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in, release := interruptible(c.Context(), signals.listen(), io.Discard)
			defer release()
			return afterSignal(in.Finish, e.run(in.Finish, args))
		},
	}
	fs := c.Flags()
	fs.StringVar(&e.prometheus, "prometheus", "", "write OpenMetrics text with time stamps into `FILE`; - is standard output")
	fs.StringVar(&e.csv, "csv", "", "write the tables into `DIR`")
	fs.StringVar(&e.grafana, "grafana", "", "write the dashboard of Grafana into `FILE`; - is standard output")
	fs.BoolVar(&e.follow, "follow", false, "go on until the run is over")
	fs.StringVar(&e.since, "since", "", "send only what is not older than this `TIME`, as in 2026-03-01T12:00:00Z")
	e.add(c, "write the numbers to this `URL` of InfluxDB, as in 'http://host:8086/write?db=weir', or as line protocol into a file; - is standard output")
	return c
}

// run does all that was asked for.
func (e *exporter) run(ctx context.Context, args []string) error {
	if e.grafana != "" {
		if err := e.file(e.grafana, func(w io.Writer) error { _, err := io.WriteString(w, export.Grafana()); return err }); err != nil {
			return err
		}
		if len(args) == 0 {
			return nil
		}
	}
	if len(args) == 0 {
		return exit{exitUsage, errors.New("which run? See: weir export --help")}
	}
	lines := "" // file of line protocol
	if e.influx != "" && !strings.HasPrefix(e.influx, "http://") && !strings.HasPrefix(e.influx, "https://") {
		lines, e.influx = e.influx, ""
	}
	if e.metrics != "" && !e.follow {
		return exit{exitUsage, errors.New("--metrics shows a run that goes on: it needs --follow")}
	}
	out, err := e.open(ctx, analysis.Analyze, e.streams)
	if err != nil {
		return err
	}
	defer out.close()
	if e.prometheus == "" && lines == "" && e.csv == "" && e.grafana == "" && e.remote == "" && e.influx == "" && e.metrics == "" {
		return exit{exitUsage, errors.New("where to? Give at least one of --prometheus, --remote-write, --influx, --csv, --grafana, --metrics")}
	}
	since, err := e.from()
	if err != nil {
		return err
	}
	if campaign.Is(args[0]) {
		if e.prometheus != "" || lines != "" || e.csv != "" || e.follow {
			return exit{exitUsage, fmt.Errorf("%s is a campaign, whose runs are only sent (--remote-write, --influx URL): for the rest, name one of its runs", args[0])}
		}
		return e.campaign(ctx, args[0], out, since)
	}
	dir := args[0]
	return errors.Join(e.live(ctx, dir, lines, out, since), e.after(dir))
}

// campaign sends all runs of a campaign that are there.
func (e *exporter) campaign(ctx context.Context, folder string, out *exports, since time.Time) error {
	c, err := campaign.Read(folder)
	if err != nil {
		return err
	}
	var errs []error
	for i := range c.Runs {
		dir := filepath.Join(folder, c.Runs[i].Dir)
		if results.IsRun(dir) {
			errs = append(errs, e.live(ctx, dir, "", out, since))
		}
	}
	return errors.Join(errs...)
}

// from reads --since.
func (e *exporter) from() (time.Time, error) {
	if e.since == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, e.since)
	if err != nil {
		return t, exit{exitUsage, fmt.Errorf("--since %s: use a time such as 2026-03-01T12:00:00Z", e.since)}
	}
	return t, nil
}

// file writes a file, or standard output.
func (e *exporter) file(name string, write func(io.Writer) error) error {
	if name == "-" {
		return write(e.out)
	}
	return results.WriteFile(filepath.Dir(name), filepath.Base(name), write)
}

// live sends what can be sent while a run goes on, and waits for its end if
// that was asked for.
func (e *exporter) live(ctx context.Context, dir, lines string, out *exports, since time.Time) error {
	err := out.begin(ctx, dir, func(export.Receiver) time.Time { return since }, e.err)
	if err != nil {
		finished(out.senders, 0, 0)
		return err
	}
	if lines != "" {
		err = e.file(lines, func(w io.Writer) error { return export.Lines(ctx, w, dir, e.follow, analysis.Analyze) })
	}
	if e.follow && err == nil {
		_, err = export.Wait(ctx, dir)
	}
	for i, r := range finished(out.senders, time.Minute, 0) {
		err = errors.Join(err, e.sent(r, out.receivers[i], dir))
	}
	out.linger(ctx, e.err)
	return err
}

// sent says what was sent; what was not is an error.
func (e *exporter) sent(r export.Report, t export.Receiver, dir string) error {
	if told := sent(r, t, dir, e.exportFlags); told != "" {
		return errors.New(told)
	}
	_, err := fmt.Fprintf(e.err, "%s sent to %s\n", values(r.Sent), t)
	return err
}

// after writes the files that need the whole run.
func (e *exporter) after(dir string) error {
	var errs []error
	if e.prometheus != "" {
		errs = append(errs, e.file(e.prometheus, func(w io.Writer) error { return export.OpenMetrics(w, dir, analysis.Analyze) }))
	}
	if e.csv != "" {
		errs = append(errs, e.tables(dir))
	}
	return errors.Join(errs...)
}

// tables writes the tables of the run in dir into another folder, or its own.
func (e *exporter) tables(dir string) error {
	run, err := results.Open(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(e.csv, 0o755); err != nil {
		return err
	}
	_, _, err = analysis.WriteTo(e.csv, run)
	return err
}
