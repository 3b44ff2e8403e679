package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"weir/analysis"
	"weir/export"
	"weir/internal/redact"
	"weir/internal/say"
	"weir/results"
	"weir/run"
	"weir/run/campaign"
	"weir/storage"
)

// An exporter is weir export.
type exporter struct {
	streams
	exportFlags
	follow                   bool
	prometheus, csv, grafana string
	since                    string
}

func exportCommand(s streams) *cobra.Command {
	e := exporter{streams: s}
	c := &cobra.Command{
		Use:   "export RUN|CAMPAIGN",
		Short: "Export a run to Prometheus, InfluxDB, Grafana or CSV",
		Long: `Export a run to Prometheus, InfluxDB, Grafana or CSV.

The run may be under way or have been killed. Each second is exported with its own time.
Several destinations can be combined; of a campaign, all runs are sent.

  --prometheus FILE   OpenMetrics text, from which promtool makes blocks: for
                      runs older than what a Prometheus server accepts
  --remote-write URL  to Prometheus, or any receiver of remote write 1.0
  --influx URL|FILE   to InfluxDB 1.x or 2.x, or as its line protocol
  --csv DIR           curve.csv, intervals.csv, hosts.csv and findings.json
  --grafana FILE      the dashboard; needs no RUN
  --metrics ADDRESS   a page for Prometheus to fetch, until the run is over

With --follow the export continues until the run is over. weir run and weir find also take
--metrics, --remote-write and --influx. For values that could not be sent, the time of the
first one is printed: --since sends only values from then on.`,
		Example: `  weir export runs/latest --remote-write http://127.0.0.1:9090/api/v1/write
  weir export runs/latest --influx 'http://127.0.0.1:8086/write?db=weir' --follow
  weir export runs/latest --prometheus run.om && promtool tsdb create-blocks-from openmetrics run.om data
  weir export runs/latest --influx - | gzip > run.lp.gz
  weir export --grafana weir.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in, release := e.interruptible(c.Context(), io.Discard)
			defer release()
			err := e.run(in.Finish, args)
			if errors.As(err, new(*run.UsageError)) {
				err = usage(err)
			}
			return afterSignal(in.Finish, err)
		},
	}
	fs := c.Flags()
	fs.StringVar(&e.prometheus, "prometheus", "", "write OpenMetrics text with time stamps into `FILE`; - is standard output")
	fs.StringVar(&e.csv, "csv", "", "write the tables into `DIR`")
	fs.StringVar(&e.grafana, "grafana", "", "write the dashboard of Grafana into `FILE`; - is standard output")
	fs.BoolVar(&e.follow, "follow", false, "continue until the run is over")
	fs.StringVar(&e.since, "since", "", "send only values from this `TIME` on, as in 2026-03-01T12:00:00Z")
	e.add(c, "write the measurements to this `URL` of InfluxDB, as in 'http://host:8086/write?db=weir', or as line protocol into a file; "+
		"- is standard output")
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
	if e.influx != "" && !strings.HasPrefix(e.influx, "http://") && !strings.HasPrefix(e.influx, "https://") {
		lines, e.influx = e.influx, ""
	}
	if e.metrics != "" && !e.follow {
		return usagef("--metrics serves the metrics of a run under way: it needs --follow")
	}
	out, err := e.open(ctx, analysis.Analyze, e.streams)
	if err != nil {
		return err
	}
	defer out.close()
	if e.prometheus+lines+e.csv+e.grafana+e.remote+e.influx+e.metrics == "" {
		return usagef("name a destination: at least one of --prometheus, --remote-write, --influx, --csv, --grafana, --metrics")
	}
	var since time.Time
	if e.since != "" {
		if since, err = time.Parse(time.RFC3339Nano, e.since); err != nil {
			return usagef("--since %s: use a time such as 2026-03-01T12:00:00Z", e.since)
		}
	}
	dir := args[0]
	if !campaign.Is(dir) {
		return errors.Join(e.send(ctx, dir, lines, out, since), e.files(dir))
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
			err = errors.Join(err, e.send(ctx, one, "", out, since))
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
func (e *exporter) send(ctx context.Context, dir, lines string, out *exports, since time.Time) error {
	err := out.begin(ctx, dir, func(export.Receiver) time.Time { return since }, e.err)
	if err != nil {
		finish(out.senders, 0, 0)
		return err
	}
	if lines != "" {
		err = e.file(lines, func(w io.Writer) error { return export.Lines(ctx, w, dir, e.follow, analysis.Analyze) })
	}
	if e.follow && err == nil {
		_, err = export.Wait(ctx, dir)
	}
	for i, r := range finish(out.senders, time.Minute, 0) {
		if problem := out.problem(r, out.receivers[i]); problem != "" {
			err = errors.Join(err, errors.New(problem))
		} else {
			e.printErr("%s sent to %s\n", say.Plural(r.Sent, "value"), out.receivers[i])
		}
	}
	out.linger(ctx, e.err)
	return err
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
	_, _, writing := analysis.WriteTo(e.csv, run)
	return errors.Join(err, writing)
}

// exportFlags set the destinations of a run's values while it goes on, and afterwards.
type exportFlags struct {
	metrics, remote, influx string
	remoteAuth, influxAuth  []string
}

func (f *exportFlags) add(c *cobra.Command, influx string) {
	fs := c.Flags()
	fs.StringVar(&f.metrics, "metrics", "", "serve metrics for Prometheus at http://`ADDRESS`/metrics while the run goes on; "+
		"a port alone is for this machine only")
	fs.StringVar(&f.remote, "remote-write", "", "send the measurements to this `URL` of Prometheus remote write, "+
		"as in http://host:9090/api/v1/write")
	fs.StringVar(&f.influx, "influx", "", influx)
	fs.StringSliceVar(&f.remoteAuth, "remote-write-auth", nil,
		"credentials of --remote-write: `KEY=FILE` as in a scenario's auth (token_file, user, password_file, ca_file, cert_file ...)")
	fs.StringSliceVar(&f.influxAuth, "influx-auth", nil, "credentials of --influx: `KEY=FILE`, as for --remote-write-auth")
}

// exports are the destinations of one run's values. They implement run.Exporter.
type exports struct {
	exportFlags
	dir       string
	find      export.Finder
	receivers []export.Receiver
	page      *export.Page
	senders   []*export.Sender
	to        streams
}

// open checks the receivers and opens the page. Errors in flags are run.UsageErrors.
func (f *exportFlags) open(ctx context.Context, find export.Finder, s streams) (*exports, error) {
	e := &exports{exportFlags: *f, find: find, to: s}
	for _, t := range []struct {
		flag, address string
		auth          []string
		of            func(string, storage.Auth) (export.Receiver, error)
	}{{"--remote-write", f.remote, f.remoteAuth, export.RemoteWrite}, {"--influx", f.influx, f.influxAuth, export.Influx}} {
		auth, err := authOf(t.auth)
		switch {
		case err != nil:
			return nil, &run.UsageError{Err: fmt.Errorf("%s-auth: %w", t.flag, err)}
		case t.address == "" && len(t.auth) > 0:
			return nil, &run.UsageError{Err: fmt.Errorf("%s-auth needs %s", t.flag, t.flag)}
		case t.address == "":
			continue
		}
		receiver, err := t.of(t.address, auth)
		if err == nil {
			err = receiver.Check()
		}
		if err != nil {
			return nil, &run.UsageError{Err: fmt.Errorf("%s: %w", t.flag, err)}
		}
		e.receivers = append(e.receivers, receiver)
	}
	var err error
	if f.metrics != "" {
		e.page, err = export.Listen(ctx, f.metrics)
	}
	return e, listening("--metrics", err)
}

// authOf reads keys of a scenario's auth.
func authOf(pairs []string) (a storage.Auth, err error) {
	keys := map[string]any{}
	for _, p := range pairs {
		key, value, ok := strings.Cut(p, "=")
		if !ok {
			return a, errors.New("use KEY=VALUE, such as token_file=/etc/weir/token")
		}
		keys[key] = value
		if key == "insecure" {
			keys[key] = value == "true"
		}
	}
	text, err := json.Marshal(keys)
	if err != nil {
		return a, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&a); err != nil {
		return a, fmt.Errorf("%s: use keys of a scenario's auth, such as token_file or user and password_file",
			strings.TrimPrefix(err.Error(), "json: "))
	}
	return a, nil
}

// begin exports the run in dir, to each receiver the values from since on.
func (e *exports) begin(ctx context.Context, dir string, since func(export.Receiver) time.Time, say io.Writer) error {
	e.dir, e.senders = dir, nil
	if e.page != nil {
		if err := e.page.Show(dir); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(say, "metrics        %s\n", e.page.URL()) // the run survives the loss of its terminal
	}
	for _, t := range e.receivers {
		s, err := export.Send(ctx, dir, t, export.Options{Find: e.find, Since: since(t)})
		if err != nil {
			return err
		}
		e.senders = append(e.senders, s)
	}
	return nil
}

// Begin implements run.Exporter. Receivers that refuse duplicates do not get what a
// resumed run had measured before.
func (e *exports) Begin(ctx context.Context, dir string, resumed bool) error {
	return e.begin(ctx, dir, func(t export.Receiver) time.Time {
		if resumed && t.Once() {
			return time.Now()
		}
		return time.Time{}
	}, e.to.progress())
}

// How long the end of a run waits for receivers.
const (
	exportPatience = 10 * time.Second // that accept nothing
	exportMost     = 30 * time.Second // in all
)

// Finish implements run.Exporter. It reports what could not be sent.
func (e *exports) Finish(ctx context.Context) {
	if len(e.senders) > 0 {
		defer time.AfterFunc(time.Second, func() { e.to.say("weir: export: sending the remaining values\n") }).Stop()
	}
	for i, r := range finish(e.senders, exportPatience, exportMost) {
		if problem := e.problem(r, e.receivers[i]); problem != "" {
			e.to.printErr("weir: export: %s\n", problem)
		}
	}
	if e.dir != "" {
		e.linger(ctx, e.to.progress())
	}
	e.close()
}

// linger serves the page until the end of the run was fetched.
func (e *exports) linger(ctx context.Context, to io.Writer) {
	if e.page == nil {
		return
	}
	e.page.Linger(ctx, e.find, func(most time.Duration) {
		_, _ = fmt.Fprintf(to, "weir: waiting for Prometheus to fetch the end of the run: at most %s; interrupt to end this\n",
			most.Round(time.Second))
	})
}

func (e *exports) close() {
	if e.page != nil {
		_ = e.page.Close() // it has waited for the answers under way
	}
}

// finish finishes all senders at once.
func finish(senders []*export.Sender, patience, most time.Duration) []export.Report {
	reports := make([]export.Report, len(senders))
	var wait sync.WaitGroup
	for i, s := range senders {
		wait.Go(func() { reports[i] = s.Finish(patience, most) })
	}
	wait.Wait()
	return reports
}

// problem returns what a receiver does not have, and how to send it; "" if it has all.
func (e *exports) problem(r export.Report, t export.Receiver) string {
	var parts []string
	if r.Err != nil {
		parts = append(parts, fmt.Sprintf("%s: %v", t, r.Err))
	}
	if r.Refused > 0 {
		text := fmt.Sprintf("%s refused %s: %s", t, say.Plural(r.Refused, "value"), r.Reason)
		for _, old := range []string{"out of order", "out of bounds", "too old", "too far in the past"} {
			if strings.Contains(r.Reason, old) {
				text += "; it accepts no values older than those that it has: --since sends the rest of a run, " +
					"--prometheus FILE makes blocks of old ones"
				break
			}
		}
		parts = append(parts, text)
	}
	if r.Left > 0 {
		again := "weir export " + e.dir + " " + t.Flag() + " '" + redact.URL(t.URL.String()) + "'"
		auth := e.influxAuth
		if t.Flag() == "--remote-write" {
			auth = e.remoteAuth
		}
		if len(auth) > 0 { // names of files, no secrets
			again += " " + t.Flag() + "-auth '" + strings.Join(auth, ",") + "'"
		}
		if r.Sent > 0 {
			again += " --since " + r.Since.Format("2006-01-02T15:04:05.000Z")
		}
		why := ""
		if r.Trouble != "" {
			why = " (" + r.Trouble + ")"
		}
		parts = append(parts, fmt.Sprintf("%s could not be sent to %s%s; later: %s", say.Plural(r.Left, "value"), t, why, again))
	}
	return strings.Join(parts, "; ")
}
