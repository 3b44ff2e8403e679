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

func (f *agentFlags) check() error {
	e := &f.endpoint
	pins, wrongPin := trust.ReadPins(f.pins)
	e.Pins = pins
	info, noRoot := os.Stat(f.o.Root)
	outside := e.MaxFile > 0 || e.CertFile != "" || e.URL != "" || e.Listen != "127.0.0.1:0"
	insecure := slices.ContainsFunc(e.Issuers, func(i string) bool { return !strings.HasPrefix(i, "https://") })
	return flagfile.All(
		flagfile.If(f.o.Site == "", "site", "name the site: --site NAME"),
		flagfile.If(f.o.Site != "" && !agent.IsSiteName(f.o.Site), "site",
			"--site %s: use letters, digits, dots, dashes and underscores, 64 at most", line(f.o.Site)),
		flagfile.If(f.o.Root == "", "root", "name the folder with its files: --root DIR"),
		flagfile.If(f.o.Root != "" && noRoot != nil, "root",
			"--root: %w: name an existing folder; a new site may begin with an empty one", noRoot),
		flagfile.If(noRoot == nil && !info.IsDir(), "root", "--root %s is not a folder", f.o.Root),
		f.clientFlags.check(),
		flagfile.Wrap("site-ca", errorOf(trust.WithSystem(f.o.SiteCA))),
		flagfile.If(f.noEndpoint && outside, "no-endpoint listen url cert key max-file",
			"--no-endpoint: leave --listen, --url, --cert, --key and --max-file out"),
		flagfile.Listen("listen", e.Listen),
		flagfile.Pair("cert", e.CertFile, "key", e.KeyFile),
		flagfile.If(insecure, "issuer", "--issuer: use its https URL, as in its tokens"),
		flagfile.Together("client-ca", e.ClientCA, "client", strings.Join(e.Clients, ",")),
		checkAuthorities("client-ca", e.ClientCA),
		flagfile.If(f.o.Slots < 1 || f.o.Slots > agent.MostSlots, "slots", "--slots %d: use 1 or more, up to %d", f.o.Slots, agent.MostSlots),
		flagfile.Wrap("tpc-pin", wrongPin))
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
		return serviceEnd(ctx, listening("endpoint", err))
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
