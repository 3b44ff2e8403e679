package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/flagfile"
	"weir/internal/trust"
	"weir/internal/unit"
	"weir/monitor"
	"weir/transfer/agent"
	"weir/transfer/mover"
)

// agentFlags are the flags of agent.Options.
type agentFlags struct {
	clientFlags
	o          agent.Options
	endpoint   agent.EndpointOptions
	noEndpoint bool
	pins       []string
	private    bool // --allow-private, if it was given
	stdin      bool
	file       flagfile.File
}

func agentCommand(s streams) *cobra.Command {
	var f agentFlags
	c := command("agent {--site NAME --root DIR | --config FILE}", cobra.NoArgs, func(c *cobra.Command, _ []string) error {
		if err := loadConfig(c, &f.file, f.check); err != nil {
			return err
		}
		if c.Flags().Changed("allow-private") {
			f.o.Private = &f.private
		}
		return f.run(c.Context(), s)
	})
	f.addAll(c)
	return c
}

func (f *agentFlags) addAll(c *cobra.Command) {
	f.file.Add(c.Flags(), nil)
	f.add(c)
	e := &f.endpoint
	f.o.Slots, e.Listen = 32, "127.0.0.1:0"
	buffer := func(text string) (unit.Size, error) {
		size, err := unit.ParseSize(text)
		if err == nil && (size < mover.MinBuffer || size > mover.MaxBuffer) {
			err = errors.New("use 16KiB to 64MiB")
		}
		return size, err
	}
	flagVars{
		"site": &f.o.Site, "root": &f.o.Root, "state": &f.o.State, "new-root": &f.o.NewRoot, "site-ca": &f.o.SiteCA, "slots": &f.o.Slots,
		"buffer": into(&f.o.Buffer, buffer), "no-endpoint": &f.noEndpoint, "listen": &e.Listen, "url": &e.URL,
		"cert": &e.CertFile, "key": &e.KeyFile, "client-ca": &e.ClientCA, "client": &e.Clients, "issuer": &e.Issuers, "audience": &e.Audience,
		"tpc-allow": commas{&e.Peers}, "tpc-pin": commas{&f.pins}, "tpc-private": &e.Private, "allow-private": &f.private,
		"max-file": into(&e.MaxFile, parseMaxFile), "while-stdin": &f.stdin,
	}.add(c)
}

func (f *agentFlags) check() (err error) {
	e := &f.endpoint
	outside := e.MaxFile > 0 || e.CertFile != "" || e.URL != "" || e.Listen != "127.0.0.1:0"
	insecure := slices.ContainsFunc(e.Issuers, func(i string) bool { return !strings.HasPrefix(i, "https://") })
	if err := cmp.Or(
		flagfile.If(f.o.Site == "", "", "name the site: --site NAME"),
		flagfile.If(f.o.Root == "", "", "name the folder with its files: --root DIR"),
		flagfile.Together("cert", e.CertFile, "key", e.KeyFile),
		flagfile.If(f.noEndpoint && outside, "no-endpoint", "--no-endpoint: leave --listen, --url, --cert, --key and --max-file out"),
		flagfile.If(insecure, "issuer", "--issuer: use its https URL, as in its tokens"),
		flagfile.Together("client-ca", e.ClientCA, "client", strings.Join(e.Clients, ",")),
		flagfile.If(f.o.Slots < 1, "slots", "--slots %d: use 1 or more", f.o.Slots)); err != nil {
		return err
	}
	if e.Pins, err = trust.ReadPins(f.pins); err != nil {
		return flagfile.Wrap("tpc-pin", err)
	}
	info, err := os.Stat(f.o.Root)
	return cmp.Or(flagfile.If(err != nil, "root", "--root: %w: name an existing folder; a new site may begin with an empty one", err),
		flagfile.If(err == nil && !info.IsDir(), "root", "--root %s is not a folder", f.o.Root))
}

func (f *agentFlags) run(ctx context.Context, s streams) error {
	if _, _, err := monitor.RaiseOpenFiles(); err != nil {
		return err
	}
	conf, err := f.config()
	if err != nil {
		return err
	}
	if path := cmp.Or(f.tokenFile, os.Getenv("WEIR_TOKEN_FILE")); path != "" {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
			s.printErr("weir: other users can read the token in %s (mode %04o): chmod 600 %s\n", path, info.Mode().Perm(), path)
		}
	}
	conf.Wait = 40 * time.Second // longer than the coordinator holds a poll for work
	o := f.o
	o.Coordinator, o.Version, o.Log = conf, version(), s.log()
	if !f.noEndpoint {
		o.Endpoint = &f.endpoint
	}
	ctx, cancel := s.untilSignal(ctx, f.stdin)
	defer cancel()
	a, err := agent.New(ctx, o)
	if err != nil {
		return serviceEnd(ctx, err)
	}
	where := "without an endpoint"
	if a.URL() != "" {
		where = "at " + a.URL()
	}
	if _, err := fmt.Fprintf(s.out, "site %s %s\n", o.Site, where); err != nil {
		return errors.Join(err, a.Close())
	}
	return errors.Join(withAdvice(conf.URLs[0], a.Run(ctx)), a.Close())
}
