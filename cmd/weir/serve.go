package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/flagfile"
	"weir/internal/token"
	"weir/internal/trust"
	"weir/internal/unit"
	"weir/monitor"
	"weir/serve"
	"weir/transfer/endpoint"
)

// serveFlags are the flags of a serve.Config.
type serveFlags struct {
	conf       serve.Config
	whileStdin bool

	passwordFile, tokenFile string
	keysFile, tpcCA         string
	cores                   int
	cpus                    []int

	issuers, audiences []string // of tokens
	third              bool     // third-party copies
	copies             endpoint.CopyOptions
	pins               []string

	file  flagfile.File
	extra serveKeys
}

func serveCommand(s streams) *cobra.Command {
	var f serveFlags
	c := command("serve [DIR]", cobra.MaximumNArgs(1), func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			f.conf.Dir = args[0]
		}
		if err := loadConfig(c, &f.file, f.check); err != nil {
			return err
		}
		f.conf.Log = s.log()
		if err := f.useProcessors(); err != nil {
			return err
		}
		ctx, cancel := s.untilSignal(c.Context(), f.whileStdin)
		defer cancel()
		return serveUntil(ctx, f.conf, s)
	})
	f.add(c)
	return c
}

func (f *serveFlags) add(c *cobra.Command) {
	conf, copies := &f.conf, &f.copies
	f.file.Add(c.Flags(), &f.extra)
	conf.Listen = "127.0.0.1:0"
	flagVars{
		"synthetic": func(text string) error {
			sets, err := serve.ParseSynthetic(text)
			conf.Synthetic = append(conf.Synthetic, sets...)
			return err
		},
		"events": func(text string) error {
			set, err := serve.ParseEvents(text)
			conf.Synthetic = append(conf.Synthetic, set)
			return err
		},
		"cpu-per-page": &conf.PageCPU, "page": into(&conf.Page, unit.ParseSize), "threads": &conf.Threads, "seed": &conf.Seed,
		"listen": &conf.Listen, "public": &conf.Public, "cert": &conf.CertFile, "key": &conf.KeyFile, "user": &conf.User,
		"password-file": &f.passwordFile, "token-file": &f.tokenFile, "read-only": &conf.ReadOnly, "sync": &conf.Sync,
		"rate": into(&conf.Rate, parseByterate), "total-rate": into(&conf.TotalRate, parseByterate), "delay": &conf.Delay,
		"issuer": &f.issuers, "issuer-keys": &f.keysFile, "audience": &f.audiences, "client-ca": &conf.ClientCA, "client": &conf.Clients,
		"max-file": into(&conf.MaxFile, parseMaxFile), "third-party": &f.third, "tpc-allow": commas{&copies.Guard.Hosts},
		"tpc-private": &copies.Guard.Private, "tpc-encrypted": &copies.Guard.Encrypted, "tpc-ca": &f.tpcCA, "tpc-pin": commas{&f.pins},
		"tpc-most": &copies.Most, "cores": &f.cores, "cpu": &f.cpus, "while-stdin": &f.whileStdin,
	}.add(c)
}

// useProcessors restricts this process to the processors of --cores or --cpu.
func (f *serveFlags) useProcessors() error {
	if f.cores > 0 {
		return flagfile.Wrap("cores", monitor.UseCores(f.cores))
	}
	if len(f.cpus) > 0 {
		return flagfile.Wrap("cpu", monitor.UseProcessors(f.cpus))
	}
	return nil
}

// check completes the configuration.
func (f *serveFlags) check() error {
	conf := &f.conf
	conf.Dir = cmp.Or(conf.Dir, f.file.Resolve(f.extra.Dir))
	info, noDir := os.Stat(conf.Dir)
	err := flagfile.All(
		flagfile.If((conf.Dir == "") == (len(conf.Synthetic) == 0), "dir synthetic events",
			"name either a folder or synthetic files (--synthetic COUNTxSIZE, --events EVENTSxSIZE)"),
		flagfile.If(conf.Dir != "" && noDir != nil, "dir", "folder to serve: %w", noDir),
		flagfile.If(noDir == nil && !info.IsDir(), "dir", "%s is not a folder", line(conf.Dir)),
		secretInto(&conf.Password, "password-file", f.passwordFile),
		secretInto(&conf.Token, "token-file", f.tokenFile),
		flagfile.Together("user", conf.User, "password-file", f.passwordFile),
		flagfile.Listen("listen", conf.Listen),
		flagfile.Pair("cert", conf.CertFile, "key", conf.KeyFile),
		flagfile.If(f.cores < 0, "cores", "--cores %d: use a number of processors, or 0 for all", f.cores),
		flagfile.If(f.cores > 0 && len(f.cpus) > 0, "cpu cores", "--cores and --cpu cannot be combined: --cpu names the processors"),
		flagfile.If(conf.PageCPU == 0 && conf.Page > 0, "page cpu-per-page", "--page needs --cpu-per-page: the CPU time of a page"),
		flagfile.If(conf.PageCPU == 0 && conf.Threads > 0, "threads cpu-per-page", "--threads needs --cpu-per-page: the CPU time of a page"),
		f.checkTokens(), f.checkCopies())
	if err != nil {
		return err
	}
	return conf.Check()
}

// secretInto reads a secret from the file of a flag.
func secretInto(to *string, flag, path string) (err error) {
	*to, err = fileText(path)
	return flagfile.All(flagfile.Wrap(flag, err),
		flagfile.If(err == nil && path != "" && *to == "", flag, "--%s: %s is empty", flag, line(path)))
}

// parseByterate reads a rate in bytes per second.
func parseByterate(text string) (float64, error) {
	r, err := unit.ParseBitrate(text)
	return float64(r) / 8, err
}

// checkTokens completes the configuration of tokens and client certificates.
func (f *serveFlags) checkTokens() error {
	none := len(f.issuers) == 0
	err := flagfile.All(
		flagfile.If(none && f.keysFile != "", "issuer-keys issuer", "--issuer-keys needs --issuer"),
		flagfile.If(none && len(f.audiences) > 0, "audience issuer", "--audience needs --issuer"),
		flagfile.If(!none && len(f.audiences) == 0, "issuer audience",
			"--issuer needs --audience: the name of this server in tokens, such as https://HOST:PORT"),
		flagfile.If(len(f.issuers) > 1 && f.keysFile != "", "issuer-keys issuer", "--issuer-keys cannot be combined with several --issuer"),
		flagfile.Together("client-ca", f.conf.ClientCA, "client", strings.Join(f.conf.Clients, ",")),
		flagfile.If(f.conf.ClientCA != "" && f.conf.CertFile == "", "client-ca cert",
			"--client-ca: certificates of clients need TLS: add --cert and --key"),
		checkAuthorities("client-ca", f.conf.ClientCA))
	if err != nil || none {
		return err
	}
	o := token.Options{Audience: f.audiences}
	var keys []byte
	if f.keysFile != "" {
		if keys, err = os.ReadFile(f.keysFile); err != nil {
			return flagfile.Wrap("issuer-keys", err)
		}
	}
	for _, i := range f.issuers {
		o.Trust = append(o.Trust, token.Trust{Issuer: i, Keys: keys})
	}
	checker, err := token.NewChecker(o)
	if err != nil {
		return flagfile.Wrap("issuer", err)
	}
	f.conf.Authenticate = endpoint.Bearer(checker)
	return nil
}

// checkCopies completes the configuration of third-party copies.
func (f *serveFlags) checkCopies() (err error) {
	o := &f.copies
	g := &o.Guard
	given := len(g.Hosts) > 0 || g.Private || g.Encrypted || f.tpcCA != "" || len(f.pins) > 0 || o.Most != 0
	err = flagfile.All(
		flagfile.If(!f.third && given, "third-party", "--tpc-... are about third-party copies: add --third-party"),
		flagfile.If(f.third && len(g.Hosts) == 0, "third-party tpc-allow",
			"--third-party needs --tpc-allow: the servers to copy with, or * for all"),
		flagfile.If(o.Most < 0, "tpc-most", "--tpc-most %d: use a number of copies, or 0 for 100", o.Most))
	if err != nil || !f.third {
		return err
	}
	if o.Pins, err = trust.ReadPins(f.pins); err != nil {
		return flagfile.Wrap("tpc-pin", err)
	}
	if f.tpcCA != "" {
		pool, err := trust.Authorities(f.tpcCA)
		if err != nil {
			return flagfile.Wrap("tpc-ca", err)
		}
		o.TLS = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	f.conf.Extensions = append(f.conf.Extensions, endpoint.NewCopier(*o))
	return nil
}

func serveUntil(ctx context.Context, conf serve.Config, s streams) error {
	if _, _, err := monitor.RaiseOpenFiles(); err != nil {
		return err
	}
	server, err := serve.New(conf)
	if err != nil {
		return err
	}
	l, err := server.Listen(ctx)
	if err != nil {
		return errors.Join(listening("data server", err), server.Close())
	}
	if _, err := fmt.Fprintf(s.out, "serving %s\n", server.URL()); err != nil {
		return errors.Join(err, l.Close(), server.Close())
	}
	return errors.Join(server.Serve(ctx, l), server.Close())
}
