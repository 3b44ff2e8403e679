package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"weir/internal/token"
	"weir/internal/trust"
	"weir/internal/unit"
	"weir/monitor"
	"weir/scenario/flagfile"
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
	fs, conf := c.Flags(), &f.conf
	f.file.Add(fs, &f.extra)
	parsedFlag(fs, "synthetic", "", "serve synthetic files: `COUNTxSIZE`, several with commas, as in 1000x1MiB,10x1GiB",
		func(text string) error {
			sets, err := serve.ParseSynthetic(text)
			conf.Synthetic = append(conf.Synthetic, sets...)
			return err
		})
	parsedFlag(fs, "events", "",
		"serve synthetic files of events for analysis jobs: `EVENTSxSIZE`, one file, as in 50000x40KiB; or FILESxEVENTSxSIZE",
		func(text string) error {
			set, err := serve.ParseEvents(text)
			conf.Synthetic = append(conf.Synthetic, set)
			return err
		})
	fs.DurationVar(&conf.PageCPU, "cpu-per-page", 0, "use this `TIME` of CPU for each page that is read, as in 300us")
	parsedFlag(fs, "page", "", "`SIZE` of a page of --cpu-per-page, as in 8KiB; left out: what a request reads is one page",
		into(&conf.Page, unit.ParseSize))
	fs.IntVar(&conf.Threads, "threads", 0, "serve the pages of --cpu-per-page by `N` threads, one page at a time each; 0: 1")
	fs.Uint64Var(&conf.Seed, "seed", 0, "seed of the bytes of synthetic files")
	fs.StringVar(&conf.Listen, "listen", "127.0.0.1:0", "listen at `HOST:PORT`; port 0 lets the system choose")
	fs.BoolVar(&conf.Public, "public", false, "allow an address beyond this machine without TLS and credentials")
	fs.StringVar(&conf.CertFile, "cert", "", "server certificate, a PEM `FILE`; with --key the server uses TLS")
	fs.StringVar(&conf.KeyFile, "key", "", "key of --cert, a PEM `FILE`")
	fs.StringVar(&conf.User, "user", "", "require this user `NAME` and the password of --password-file")
	fs.StringVar(&f.passwordFile, "password-file", "", "`FILE` with the password")
	fs.StringVar(&f.tokenFile, "token-file", "", "require the bearer token in `FILE`")
	fs.BoolVar(&conf.ReadOnly, "read-only", false, "refuse whatever changes files")
	fs.BoolVar(&conf.Sync, "sync", false, "acknowledge an upload when it is on stable storage")
	parsedFlag(fs, "rate", "", "limit each connection, as in `10MB/s`", into(&conf.Rate, parseByterate))
	parsedFlag(fs, "total-rate", "", "limit all connections together, as in `1Gbit/s`", into(&conf.TotalRate, parseByterate))
	fs.DurationVar(&conf.Delay, "delay", 0, "delay each answer, as in `5ms`")
	fs.StringArrayVar(&f.issuers, "issuer", nil, "accept tokens of this issuer (`URL`), WLCG profile: "+
		"their scopes are their rights (repeatable)")
	fs.StringVar(&f.keysFile, "issuer-keys", "", "`FILE` with the issuer's keys (JWKS); by default they are fetched from the issuer")
	fs.StringArrayVar(&f.audiences, "audience", nil, "audience of the tokens of --issuer, such as `https://HOST:PORT` (repeatable)")
	fs.StringVar(&conf.ClientCA, "client-ca", "", "admit clients with certificates of these authorities, a PEM `FILE`, and a name of --client")
	fs.StringArrayVar(&conf.Clients, "client", nil, "common name, DNS name or whole subject of a client's certificate, "+
		"as in `ada` (repeatable)")
	parsedFlag(fs, "max-file", "", "refuse files of more than this `SIZE`, as in 100GB", into(&conf.MaxFile, parseMaxFile))
	fs.BoolVar(&f.third, "third-party", false, "copy files from and to other servers when a client asks (COPY, HTTP-TPC)")
	fs.StringSliceVar(&f.copies.Guard.Hosts, "tpc-allow", nil,
		"servers of third-party copies: `HOST`, HOST:PORT, *.DOMAIN or *; several with commas")
	fs.BoolVar(&f.copies.Guard.Private, "tpc-private", false,
		"allow third-party copies also with addresses of this machine and of private networks")
	fs.BoolVar(&f.copies.Guard.Encrypted, "tpc-encrypted", false, "allow third-party copies over https only")
	fs.StringVar(&f.tpcCA, "tpc-ca", "", "authorities of servers in third-party copies, a PEM `FILE` (default those of the system)")
	fs.StringSliceVar(&f.pins, "tpc-pin", nil, "in third-party copies, accept a server by its certificate: `HOST:PORT=SHA256`; "+
		"several with commas")
	fs.IntVar(&f.copies.Most, "tpc-most", 0, "make at most `N` third-party copies at once; 0: 100")
	fs.IntVar(&f.cores, "cores", 0, "run on at most `N` processors; 0: all. 1 represents a single-threaded server")
	fs.IntSliceVar(&f.cpus, "cpu", nil, "run on these processors: `NUMBER`, from 0; several with commas")
	fs.BoolVar(&f.whileStdin, "while-stdin", false, "exit when standard input ends")
}

// useProcessors restricts this process to the processors of --cores or --cpu.
func (f *serveFlags) useProcessors() error {
	if f.cores > 0 {
		if err := monitor.UseCores(f.cores); err != nil {
			return fmt.Errorf("--cores: %w", err)
		}
	}
	if len(f.cpus) > 0 {
		if err := monitor.UseProcessors(f.cpus); err != nil {
			return fmt.Errorf("--cpu: %w", err)
		}
	}
	return nil
}

// check completes the configuration.
func (f *serveFlags) check() (err error) {
	conf := &f.conf
	conf.Dir = cmp.Or(conf.Dir, f.file.Resolve(f.extra.Dir))
	if (conf.Dir == "") == (len(conf.Synthetic) == 0) {
		return errors.New("name either a folder or synthetic files (--synthetic COUNTxSIZE, --events EVENTSxSIZE)")
	}
	switch {
	case f.cores < 0:
		return flagfile.About("cores", fmt.Errorf("--cores %d: use a number of processors, or 0 for all", f.cores))
	case f.cores > 0 && len(f.cpus) > 0:
		return flagfile.About("cpu", errors.New("--cores and --cpu cannot be combined: --cpu names the processors"))
	case conf.PageCPU == 0 && conf.Page > 0:
		return flagfile.About("page", errors.New("--page needs --cpu-per-page: the CPU time of a page"))
	case conf.PageCPU == 0 && conf.Threads > 0:
		return flagfile.About("threads", errors.New("--threads needs --cpu-per-page: the CPU time of a page"))
	}
	if conf.Password, err = fileText(f.passwordFile); err != nil {
		return flagfile.About("password-file", fmt.Errorf("--password-file: %w", err))
	}
	if conf.Token, err = fileText(f.tokenFile); err != nil {
		return flagfile.About("token-file", fmt.Errorf("--token-file: %w", err))
	}
	if err := f.checkTokens(); err != nil {
		return err
	}
	return f.checkCopies()
}

// parseByterate reads a rate in bytes per second.
func parseByterate(text string) (float64, error) {
	r, err := unit.ParseBitrate(text)
	return float64(r) / 8, err
}

// checkTokens completes the configuration of tokens and client certificates.
func (f *serveFlags) checkTokens() error {
	switch {
	case len(f.issuers) == 0 && (len(f.audiences) > 0 || f.keysFile != ""):
		return flagfile.About(cmp.Or(flagfile.Given("issuer-keys", f.keysFile), "audience"),
			errors.New("--audience and --issuer-keys need --issuer"))
	case len(f.issuers) > 0 && len(f.audiences) == 0:
		return flagfile.About("issuer", errors.New("--issuer needs --audience: the name of this server in tokens, such as https://HOST:PORT"))
	case len(f.issuers) > 1 && f.keysFile != "":
		return flagfile.About("issuer-keys", errors.New("--issuer-keys cannot be combined with several --issuer"))
	case (f.conf.ClientCA == "") != (len(f.conf.Clients) == 0):
		return flagfile.About(cmp.Or(flagfile.Given("client-ca", f.conf.ClientCA), "client"),
			errors.New("--client-ca and --client must be given together"))
	case len(f.issuers) == 0:
		return nil
	}
	o := token.Options{Audience: f.audiences}
	var keys []byte
	if f.keysFile != "" {
		var err error
		if keys, err = os.ReadFile(f.keysFile); err != nil {
			return flagfile.About("issuer-keys", fmt.Errorf("--issuer-keys: %w", err))
		}
	}
	for _, i := range f.issuers {
		o.Trust = append(o.Trust, token.Trust{Issuer: i, Keys: keys})
	}
	checker, err := token.NewChecker(o)
	if err != nil {
		return flagfile.About("issuer", fmt.Errorf("--issuer: %w", err))
	}
	f.conf.Authenticate = endpoint.Bearer(checker)
	return nil
}

// checkCopies completes the configuration of third-party copies.
func (f *serveFlags) checkCopies() (err error) {
	o := &f.copies
	g := &o.Guard
	switch {
	case !f.third && (len(g.Hosts) > 0 || g.Private || g.Encrypted || f.tpcCA != "" || len(f.pins) > 0 || o.Most != 0):
		return errors.New("--tpc-... are about third-party copies: add --third-party")
	case f.third && len(g.Hosts) == 0:
		return flagfile.About("third-party", errors.New("--third-party needs --tpc-allow: the servers to copy with, or * for all"))
	case o.Most < 0:
		return flagfile.About("tpc-most", fmt.Errorf("--tpc-most %d: use a number of copies, or 0 for 100", o.Most))
	case !f.third:
		return nil
	}
	if o.Pins, err = trust.ReadPins(f.pins); err != nil {
		return flagfile.About("tpc-pin", fmt.Errorf("--tpc-pin: %w", err))
	}
	if f.tpcCA != "" {
		pool, err := trust.Authorities(f.tpcCA)
		if err != nil {
			return flagfile.About("tpc-ca", fmt.Errorf("--tpc-ca: %w", err))
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
		return errors.Join(err, server.Close())
	}
	if _, err := fmt.Fprintf(s.out, "serving %s\n", server.URL()); err != nil {
		return errors.Join(err, l.Close(), server.Close())
	}
	return errors.Join(server.Serve(ctx, l), server.Close())
}
