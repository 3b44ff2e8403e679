package export

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

	"weir/internal/redact"
	"weir/internal/say"
	"weir/storage"
)

// Config names the destinations of runs. Destinations with an empty address are left out.
type Config struct {
	Metrics                     string    // address of a page for Prometheus; a port alone: this machine only
	RemoteWrite, Influx         string    // URLs
	RemoteWriteAuth, InfluxAuth []string  // credentials: KEY=FILE as in a scenario's auth
	Find                        Finder    // returns the findings
	Progress, Problems          io.Writer // messages during the export; unsent values. Write errors are ignored
}

// Destinations receive the values of one run after the other, during the run or afterwards.
type Destinations struct {
	Config
	dir       string
	receivers []Receiver
	page      *Page
	senders   []*Sender
}

// Open checks the receivers and opens the page, until Close. Its errors are mistakes in c, or a
// *net.OpError of the page.
func Open(ctx context.Context, c Config) (*Destinations, error) {
	d := &Destinations{Config: c}
	for _, t := range []struct {
		flag, address string
		auth          []string
		of            func(string, storage.Auth) (Receiver, error)
	}{{"--remote-write", c.RemoteWrite, c.RemoteWriteAuth, RemoteWrite}, {"--influx", c.Influx, c.InfluxAuth, Influx}} {
		auth, err := authOf(t.auth)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s-auth: %w", t.flag, err)
		case t.address == "" && len(t.auth) > 0:
			return nil, fmt.Errorf("%s-auth needs %s", t.flag, t.flag)
		case t.address == "":
			continue
		}
		receiver, err := t.of(t.address, auth)
		if err == nil {
			err = receiver.Check()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.flag, err)
		}
		d.receivers = append(d.receivers, receiver)
	}
	var err error
	if c.Metrics != "" {
		d.page, err = Listen(ctx, c.Metrics)
	}
	return d, err
}

// authOf parses the keys of a scenario's auth.
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

// Begin begins to export the run in dir. For a resumed run, receivers that reject duplicates do not
// receive the earlier measurements.
func (d *Destinations) Begin(ctx context.Context, dir string, resumed bool) error {
	return d.begin(ctx, dir, func(t Receiver) time.Time {
		if resumed && t.Once() {
			return time.Now()
		}
		return time.Time{}
	})
}

// begin exports the run in dir, with the values from since on for each receiver.
func (d *Destinations) begin(ctx context.Context, dir string, since func(Receiver) time.Time) error {
	d.dir, d.senders = dir, nil
	if d.page != nil {
		if err := d.page.Show(dir); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(d.Progress, "metrics        %s\n", d.page.URL())
	}
	for _, t := range d.receivers {
		s, err := Send(ctx, dir, t, Options{Find: d.Find, Since: since(t)})
		if err != nil {
			return err
		}
		d.senders = append(d.senders, s)
	}
	return nil
}

// Limits of the wait for receivers at the end of a run.
const (
	patience     = 10 * time.Second // for receivers that accept nothing
	longestWait  = 30 * time.Second // in total
	sendPatience = time.Minute      // of Send, which has no other work
)

// Finish waits for the end of the transmission, reports the values that could not be sent, and
// closes the destinations.
func (d *Destinations) Finish(ctx context.Context) {
	if len(d.senders) > 0 {
		defer time.AfterFunc(time.Second, func() { _, _ = io.WriteString(d.Progress, "weir: export: sending the remaining values\n") }).Stop()
	}
	for i, r := range d.finish(patience, longestWait) {
		if problem := d.problem(r, d.receivers[i]); problem != "" {
			_, _ = fmt.Fprintf(d.Problems, "weir: export: %s\n", problem)
		}
	}
	if d.dir != "" {
		d.linger(ctx, d.Progress)
	}
	d.Close()
}

// Send sends the values of the run in dir from since on. Meanwhile it calls files, which may wait
// for the end of the run.
func (d *Destinations) Send(ctx context.Context, dir string, since time.Time, files func() error) error {
	if err := d.begin(ctx, dir, func(Receiver) time.Time { return since }); err != nil {
		d.finish(0, 0)
		return err
	}
	err := files()
	for i, r := range d.finish(sendPatience, 0) {
		if problem := d.problem(r, d.receivers[i]); problem != "" {
			err = errors.Join(err, errors.New(problem))
		} else {
			_, _ = fmt.Fprintf(d.Problems, "%s sent to %s\n", say.Plural(r.Sent, "value"), d.receivers[i])
		}
	}
	d.linger(ctx, d.Problems)
	return err
}

// linger serves the page until the end of the run was fetched.
func (d *Destinations) linger(ctx context.Context, to io.Writer) {
	if d.page == nil {
		return
	}
	d.page.Linger(ctx, d.Find, func(most time.Duration) {
		_, _ = fmt.Fprintf(to, "weir: waiting for Prometheus to fetch the end of the run: at most %s; interrupt to end this\n",
			most.Round(time.Second))
	})
}

// Close closes the page.
func (d *Destinations) Close() {
	if d.page != nil {
		_ = d.page.Close() // it has waited for the responses in progress
	}
}

// finish finishes all senders in parallel.
func (d *Destinations) finish(patience, most time.Duration) []Report {
	reports := make([]Report, len(d.senders))
	var wait sync.WaitGroup
	for i, s := range d.senders {
		wait.Go(func() { reports[i] = s.Finish(patience, most) })
	}
	wait.Wait()
	return reports
}

// problem returns a message about the values that a receiver is missing, and how to send them, or
// "" if it has all values.
func (d *Destinations) problem(r Report, t Receiver) string {
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
		again := "weir export " + d.dir + " " + t.Flag() + " '" + redact.URL(t.URL.String()) + "'"
		auth := d.InfluxAuth
		if t.Flag() == "--remote-write" {
			auth = d.RemoteWriteAuth
		}
		if len(auth) > 0 { // names of files, not secrets
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
