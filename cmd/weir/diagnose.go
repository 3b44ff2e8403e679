package main

import (
	"context"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"weir/diagnose"
	"weir/internal/durable"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/loadtest/run"
	"weir/storage"
	"weir/storage/all"
)

// diagnoseFlags are the flags of weir diagnose.
type diagnoseFlags struct {
	run.Selection
	write     bool
	push      bool
	exporter  string
	page      string
	to, refer string
	bytes     unit.Size
	time      time.Duration
	json      bool
}

func diagnoseCommand(s streams) *cobra.Command {
	var f diagnoseFlags
	c := command("diagnose URL [URL]", cobra.RangeArgs(1, 2), func(c *cobra.Command, args []string) error {
		ctx, cancel := s.untilSignal(c.Context(), false)
		defer cancel()
		if len(args) == 2 {
			return afterSignal(ctx, f.between(ctx, args[0], args[1], s))
		}
		return afterSignal(ctx, f.diagnose(ctx, args[0], s))
	})
	flagVars{
		"write": &f.write, "push": &f.push, "to": &f.to, "reference": &f.refer, "bytes": into(&f.bytes, unit.ParseSize),
		"time": parseTime(&f.time, time.Second),
		"set":  &f.Sets, "page": &f.page, "node-exporter": &f.exporter, "json": &f.json, "quiet/q": &s.quiet,
	}.add(c)
	return c
}

// diagnose diagnoses one file or folder.
func (f *diagnoseFlags) diagnose(ctx context.Context, target string, s streams) error {
	o, err := f.options(target, f.write)
	if err != nil {
		return err
	}
	s.say("%s: %s\n", line(o.URL.Redacted()), o.Budget())
	stop := probing(&o, s)
	report, err := diagnose.Run(ctx, o)
	if stop(); err != nil {
		return err
	}
	if f.page != "" {
		if err := durable.WriteFunc(f.page, 0o644, report.Page); err != nil {
			return err
		}
	}
	if f.json {
		return writeJSON(s.out, report)
	}
	return report.Text(s.out, columns(s.out))
}

// between diagnoses a third-party copy.
func (f *diagnoseFlags) between(ctx context.Context, source, dest string, s streams) error {
	from, err := f.options(source, false)
	if err != nil {
		return err
	}
	to, err := f.options(dest, true)
	if err != nil {
		return err
	}
	s.say("%s, %s: %s\n", line(from.URL.Redacted()), line(to.URL.Redacted()), to.Budget())
	stop := probing(&from, s)
	to.Probing = from.Probing
	report, err := diagnose.Between(ctx, from, to, f.push)
	switch stop(); {
	case err != nil:
		return err
	case f.json:
		return writeJSON(s.out, report)
	}
	return report.Text(s.out, columns(s.out))
}

// probing shows the probes of a diagnosis until stop is called.
func probing(o *diagnose.Options, s streams) (stop func()) {
	var probe atomic.Pointer[string]
	o.Probing = func(name string) { probe.Store(&name) }
	return screen.New(s.progress()).Animate(func(int) []string {
		if name := probe.Load(); name != nil {
			return []string{" " + *name}
		}
		return nil
	})
}

// options reads the target and its credentials as weir run does.
func (f *diagnoseFlags) options(target string, write bool) (o diagnose.Options, err error) {
	if run.IsScenario(target) {
		return o, usagef("%s: name a URL, such as davs://se.example.org/data/file", target)
	}
	sc, err := f.Read([]string{target})
	if err != nil {
		return o, err
	}
	plan, err := run.Plan(sc)
	if err != nil {
		return o, err
	}
	o = diagnose.Options{Write: write, To: f.to, Exporter: f.exporter, Bytes: int64(f.bytes), Time: f.time, Version: version(),
		Driver: storage.DriverNamed(all.Drivers(), plan.Driver)}
	if o.Cred, err = plan.Auth.Read(); err != nil {
		return o, usage(err)
	}
	if o.URL, err = url.Parse(target); err == nil && f.refer != "" {
		o.Refer, err = url.Parse(f.refer)
	}
	if err == nil {
		err = o.Check()
	}
	return o, usage(err)
}
