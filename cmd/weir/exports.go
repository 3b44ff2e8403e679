package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"weir/export"
	"weir/internal/redact"
	"weir/internal/say"
	"weir/storage"
)

// exportFlags say where a run's numbers go while it goes on, and afterwards.
type exportFlags struct {
	metrics, remote, influx string
	remoteAuth, influxAuth  []string
}

func (f *exportFlags) add(c *cobra.Command, influx string) {
	fs := c.Flags()
	fs.StringVar(&f.metrics, "metrics", "", "show the numbers to Prometheus at http://`ADDRESS`/metrics while the run goes on; a port alone is for this machine alone")
	fs.StringVar(&f.remote, "remote-write", "", "send the numbers to this `URL` of Prometheus remote write, as in http://host:9090/api/v1/write")
	fs.StringVar(&f.influx, "influx", "", influx)
	fs.StringSliceVar(&f.remoteAuth, "remote-write-auth", nil, "who we are there: `KEY=FILE` as in a scenario's auth (token_file, user, password_file, ca_file, cert_file ...)")
	fs.StringSliceVar(&f.influxAuth, "influx-auth", nil, "the same for InfluxDB: `KEY=FILE`")
}

// receivers returns where numbers are sent.
func (f *exportFlags) receivers() ([]export.Receiver, error) {
	var all []export.Receiver
	for _, t := range []struct {
		flag, address string
		auth          []string
		of            func(string, storage.Auth) (export.Receiver, error)
	}{{"--remote-write", f.remote, f.remoteAuth, export.RemoteWrite}, {"--influx", f.influx, f.influxAuth, export.Influx}} {
		auth, err := authOf(t.auth)
		if err != nil {
			return nil, exit{exitUsage, fmt.Errorf("%s-auth: %w", t.flag, err)}
		}
		if t.address == "" {
			if len(t.auth) > 0 {
				return nil, exit{exitUsage, fmt.Errorf("%s-auth needs %s", t.flag, t.flag)}
			}
			continue
		}
		receiver, err := t.of(t.address, auth)
		if err == nil {
			err = receiver.Check()
		}
		if err != nil {
			return nil, exit{exitUsage, fmt.Errorf("%s: %w", t.flag, err)}
		}
		all = append(all, receiver)
	}
	return all, nil
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
		return a, fmt.Errorf("%s: use keys of a scenario's auth, such as token_file or user and password_file", strings.TrimPrefix(err.Error(), "json: "))
	}
	return a, nil
}

// exports are the ways in which the numbers of one run go out.
type exports struct {
	dir       string
	flags     exportFlags
	find      export.Finder // what the run shows
	receivers []export.Receiver
	page      *export.Page
	senders   []*export.Sender
	to        streams
}

// open opens the page, and looks whether all can be sent.
func (f *exportFlags) open(ctx context.Context, find export.Finder, s streams) (*exports, error) {
	e := &exports{flags: *f, find: find, to: s}
	var err error
	if e.receivers, err = f.receivers(); err != nil {
		return nil, err
	}
	if f.metrics != "" {
		e.page, err = export.Listen(ctx, f.metrics)
	}
	return e, listening("--metrics", err)
}

// begin exports the run in dir: to each receiver what is not older than since
// says for it.
func (e *exports) begin(ctx context.Context, dir string, since func(export.Receiver) time.Time, say io.Writer) error {
	e.dir, e.senders = dir, nil
	if e.page != nil {
		if err := e.page.Show(dir); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(say, "metrics        %s\n", e.page.URL()) // only a comfort
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

// Begin exports the run in dir. Receivers that take nothing twice are not sent
// what a resumed run had measured before.
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
	exportPatience = 10 * time.Second // that take nothing
	exportMost     = 30 * time.Second // in all
)

// Finish sends what is left of a run that is over, and says what could not be
// sent. That is no error of the run.
func (e *exports) Finish(ctx context.Context) {
	note := e.to.progress()
	if len(e.senders) > 0 {
		late := time.AfterFunc(time.Second, func() {
			_, _ = fmt.Fprintln(note, "weir: export: sending what is left") // only a comfort
		})
		defer late.Stop()
	}
	for i, r := range finished(e.senders, exportPatience, exportMost) {
		if told := sent(r, e.receivers[i], e.dir, e.flags); told != "" {
			e.to.tell("weir: export: %s\n", told)
		}
	}
	if e.dir != "" {
		e.linger(ctx, note)
	}
	e.close()
}

// linger waits for whoever fetches the page, and tells that it does.
func (e *exports) linger(ctx context.Context, to io.Writer) {
	if e.page == nil {
		return
	}
	e.page.Linger(ctx, e.find, func(most time.Duration) {
		_, _ = fmt.Fprintf(to, "weir: whoever fetches the metrics may fetch the end, too: at most %s; interrupt to end this\n", most.Round(time.Second)) // only a comfort
	})
}

// close closes the page.
func (e *exports) close() {
	if e.page != nil {
		_ = e.page.Close() // the answers under way were waited for
	}
}

// finished finishes all senders at once.
func finished(senders []*export.Sender, patience, most time.Duration) []export.Report {
	reports := make([]export.Report, len(senders))
	var wait sync.WaitGroup
	for i, s := range senders {
		wait.Go(func() { reports[i] = s.Finish(patience, most) })
	}
	wait.Wait()
	return reports
}

// sent says what is missing at a receiver; "" if nothing is.
func sent(r export.Report, t export.Receiver, dir string, f exportFlags) string {
	var parts []string
	if r.Err != nil {
		parts = append(parts, fmt.Sprintf("%s: %v", t, r.Err))
	}
	if r.Refused > 0 {
		parts = append(parts, fmt.Sprintf("%s did not take %s: %s%s", t, values(r.Refused), r.Reason, hint(r.Reason)))
	}
	if r.Left > 0 {
		again := "weir export " + dir + " " + t.Flag() + " '" + redact.URL(t.URL.String()) + "'" + f.authOf(t)
		if r.Sent > 0 {
			again += " --since " + r.Since.Format("2006-01-02T15:04:05.000Z")
		}
		why := ""
		if r.Trouble != "" {
			why = " (" + r.Trouble + ")"
		}
		parts = append(parts, fmt.Sprintf("%s could not be brought to %s%s; later: %s", values(r.Left), t, why, again))
	}
	return strings.Join(parts, "; ")
}

// hint says what to do about a reason.
func hint(reason string) string {
	for _, old := range []string{"out of order", "out of bounds", "too old", "too far in the past"} {
		if strings.Contains(reason, old) {
			return "; it takes nothing that is older than what it has: --since sends the rest of a run, --prometheus FILE makes blocks of old ones"
		}
	}
	return ""
}

// authOf repeats what was said of who we are at t: names of files, no secrets.
func (f *exportFlags) authOf(t export.Receiver) string {
	pairs := f.influxAuth
	if t.Flag() == "--remote-write" {
		pairs = f.remoteAuth
	}
	if len(pairs) == 0 {
		return ""
	}
	return " " + t.Flag() + "-auth '" + strings.Join(pairs, ",") + "'"
}

func values(n int) string { return say.Plural(n, "value") }
