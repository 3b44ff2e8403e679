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
	"weir/internal/tpc"
	"weir/internal/trust"
	"weir/internal/unit"
	"weir/monitor"
	"weir/serve"
	"weir/transfer/endpoint"
)

// serveFlags are the flags of a serve.Config.
type serveFlags struct {
	conf                    serve.Config
	synthetic, events       string
	passwordFile, tokenFile string
	rate, totalRate         string
	whileStdin              bool
	cores                   int
	cpus                    []int
	page                    string

	issuers, audiences []string // of tokens
	issuerKeys         string
	maxFile            string
	third              bool // third-party copies
	guard              tpc.Guard
	authorities        string
	pins               []string
	maxCopies          int

	file  configFile
	extra serveKeys
}

func serveCommand(s streams) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve [DIR]",
		Short: "Serve a folder or synthetic files over HTTP and WebDAV",
		Long: `Serve a folder or synthetic files over HTTP and WebDAV.

The built-in data server supports ranges, atomic uploads, digests, WebDAV and /metrics. It
listens on the loopback interface unless --listen says otherwise. Its first line of output
is "serving URL".

Synthetic files are called file000000.dat and so on. Their bytes follow from the seed and
the name and are generated as they are read, so that files of any size need neither disk nor
memory, and clients can verify what they get.

With --cpu-per-page it stands for a server whose CPU is the limit: each page that is read costs
that CPU time on one of --threads threads, and pages beyond wait in one queue.

With --issuer it accepts WLCG tokens: storage.read:/PATH reads below PATH, storage.create
makes new files and changes none, storage.modify does both. With --third-party it copies from
and to other servers (XRootD, dCache, StoRM, EOS, another weir) for clients such as gfal-copy
and FTS, and compares checksums; only with servers of --tpc-allow, and with private addresses
only with --tpc-private.`,
		Example: `  weir serve /data --listen 127.0.0.1:8080
  weir serve --synthetic 1000x1MiB
  weir serve --events 50000x40KiB
  weir serve --events 50000x40KiB --cpu-per-page 300us --page 8KiB --threads 1
  weir serve /data --listen :8443 --cert host.pem --key host.key --token-file token
  weir serve /data --listen :8443 --cert host.pem --key host.key --issuer https://iam.example.org/ --audience https://se.example.org:8443 \
      --third-party --tpc-allow '*.example.org'
  weir serve --config /etc/weir/serve.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.conf.Dir = args[0]
			}
			if err := f.file.load(c, f.check); err != nil {
				return err
			}
			f.conf.Log = s.log()
			if err := f.useProcessors(); err != nil {
				return err
			}
			ctx, cancel := s.untilSignal(c.Context(), f.whileStdin)
			defer cancel()
			return serveUntil(ctx, f.conf, s)
		},
	}
	f.add(c)
	return c
}

func (f *serveFlags) add(c *cobra.Command) {
	fs, conf := c.Flags(), &f.conf
	f.file.add(fs, &f.extra)
	fs.StringVar(&f.synthetic, "synthetic", "", "serve synthetic files: `COUNTxSIZE`, several with commas, as in 1000x1MiB,10x1GiB")
	fs.StringVar(&f.events, "events", "",
		"serve synthetic files of events for analysis jobs: `EVENTSxSIZE`, one file, as in 50000x40KiB; or FILESxEVENTSxSIZE")
	fs.DurationVar(&conf.PageCPU, "cpu-per-page", 0, "use this `TIME` of CPU for each page that is read, as in 300us")
	fs.StringVar(&f.page, "page", "", "`SIZE` of a page of --cpu-per-page, as in 8KiB; left out: what a request reads is one page")
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
	fs.StringVar(&f.rate, "rate", "", "limit each connection, as in `10MB/s`")
	fs.StringVar(&f.totalRate, "total-rate", "", "limit all connections together, as in `1Gbit/s`")
	fs.DurationVar(&conf.Delay, "delay", 0, "delay each answer, as in `5ms`")
	fs.StringArrayVar(&f.issuers, "issuer", nil, "accept tokens of this issuer (`URL`), WLCG profile: "+
		"their scopes are their rights (repeatable)")
	fs.StringVar(&f.issuerKeys, "issuer-keys", "", "`FILE` with the issuer's keys (JWKS); by default they are fetched from the issuer")
	fs.StringArrayVar(&f.audiences, "audience", nil, "audience of the tokens of --issuer, such as `https://HOST:PORT` (repeatable)")
	fs.StringVar(&conf.ClientCA, "client-ca", "", "admit clients with certificates of these authorities, a PEM `FILE`, and a name of --client")
	fs.StringArrayVar(&conf.Clients, "client", nil, "common name, DNS name or whole subject of a client's certificate, "+
		"as in `ada` (repeatable)")
	fs.StringVar(&f.maxFile, "max-file", "", "refuse files of more than this `SIZE`, as in 100GB")
	fs.BoolVar(&f.third, "third-party", false, "copy files from and to other servers when a client asks (COPY, HTTP-TPC)")
	fs.StringSliceVar(&f.guard.Hosts, "tpc-allow", nil, "servers of third-party copies: `HOST`, HOST:PORT, *.DOMAIN or *; several with commas")
	fs.BoolVar(&f.guard.Private, "tpc-private", false, "allow third-party copies also with addresses of this machine and of private networks")
	fs.BoolVar(&f.guard.Encrypted, "tpc-encrypted", false, "allow third-party copies over https only")
	fs.StringVar(&f.authorities, "tpc-ca", "", "authorities of servers in third-party copies, a PEM `FILE` (default those of the system)")
	fs.StringSliceVar(&f.pins, "tpc-pin", nil, "in third-party copies, accept a server by its certificate: `HOST:PORT=SHA256`; "+
		"several with commas")
	fs.IntVar(&f.maxCopies, "tpc-most", 0, "make at most `N` third-party copies at once; 0: 100")
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
	conf.Dir = cmp.Or(conf.Dir, f.file.resolve(f.extra.Dir))
	if (conf.Dir == "") == (f.synthetic+f.events == "") {
		return errors.New("name either a folder or synthetic files (--synthetic COUNTxSIZE, --events EVENTSxSIZE)")
	}
	if f.synthetic != "" {
		if conf.Synthetic, err = serve.ParseSynthetic(f.synthetic); err != nil {
			return about("synthetic", fmt.Errorf("--synthetic: %w", err))
		}
	}
	if f.events != "" {
		set, err := serve.ParseEvents(f.events)
		if err != nil {
			return about("events", fmt.Errorf("--events: %w", err))
		}
		conf.Synthetic = append(conf.Synthetic, set)
	}
	switch {
	case f.cores < 0:
		return about("cores", fmt.Errorf("--cores %d: use a number of processors, or 0 for all", f.cores))
	case f.cores > 0 && len(f.cpus) > 0:
		return about("cpu", errors.New("--cores and --cpu cannot be combined: --cpu names the processors"))
	}
	if err := f.checkPages(); err != nil {
		return err
	}
	for _, file := range []struct {
		flag, name string
		to         *string
	}{{"--password-file", f.passwordFile, &conf.Password}, {"--token-file", f.tokenFile, &conf.Token}} {
		if *file.to, err = fileText(file.name); err != nil {
			return about(file.flag[2:], fmt.Errorf("%s: %w", file.flag, err))
		}
	}
	for _, rate := range []struct {
		flag, text string
		to         *int64
	}{{"--rate", f.rate, &conf.Rate}, {"--total-rate", f.totalRate, &conf.TotalRate}} {
		if rate.text != "" {
			r, err := unit.ParseBitrate(rate.text)
			if err != nil {
				return about(rate.flag[2:], fmt.Errorf("%s: %w", rate.flag, err))
			}
			*rate.to = int64(r / 8)
		}
	}
	if conf.MaxFile, err = maxFile(f.maxFile); err != nil {
		return err
	}
	if err := f.checkTokens(); err != nil {
		return err
	}
	return f.checkCopies()
}

// checkPages completes the configuration of pages that cost CPU time.
func (f *serveFlags) checkPages() error {
	if f.page != "" {
		size, err := unit.ParseSize(f.page)
		if err != nil {
			return about("page", fmt.Errorf("--page: %w", err))
		}
		f.conf.Page = int64(size)
	}
	if key := cmp.Or(given("page", f.page), map[bool]string{true: "threads"}[f.conf.Threads > 0]); f.conf.PageCPU == 0 && key != "" {
		return about(key, fmt.Errorf("--%s needs --cpu-per-page: the CPU time of a page", key))
	}
	return nil
}

// checkTokens completes the configuration of tokens and client certificates.
func (f *serveFlags) checkTokens() error {
	switch {
	case len(f.issuers) == 0 && (len(f.audiences) > 0 || f.issuerKeys != ""):
		return about(cmp.Or(given("issuer-keys", f.issuerKeys), "audience"), errors.New("--audience and --issuer-keys need --issuer"))
	case len(f.issuers) > 0 && len(f.audiences) == 0:
		return about("issuer", errors.New("--issuer needs --audience: the name of this server in tokens, such as https://HOST:PORT"))
	case len(f.issuers) > 1 && f.issuerKeys != "":
		return about("issuer-keys", errors.New("--issuer-keys cannot be combined with several --issuer"))
	case (f.conf.ClientCA == "") != (len(f.conf.Clients) == 0):
		return about(cmp.Or(given("client-ca", f.conf.ClientCA), "client"), errors.New("--client-ca and --client must be given together"))
	case len(f.issuers) == 0:
		return nil
	}
	o := token.Options{Audience: f.audiences}
	for _, i := range f.issuers {
		t := token.Trust{Issuer: i}
		if f.issuerKeys != "" {
			keys, err := os.ReadFile(f.issuerKeys)
			if err != nil {
				return about("issuer-keys", fmt.Errorf("--issuer-keys: %w", err))
			}
			t.Keys = keys
		}
		o.Trust = append(o.Trust, t)
	}
	checker, err := token.NewChecker(o)
	if err != nil {
		return about("issuer", fmt.Errorf("--issuer: %w", err))
	}
	f.conf.Authenticate = endpoint.Bearer(checker)
	return nil
}

// checkCopies completes the configuration of third-party copies.
func (f *serveFlags) checkCopies() (err error) {
	g := &f.guard
	switch {
	case !f.third && (len(g.Hosts) > 0 || g.Private || g.Encrypted || f.authorities != "" || len(f.pins) > 0 || f.maxCopies != 0):
		return errors.New("--tpc-... are about third-party copies: add --third-party")
	case f.third && len(g.Hosts) == 0:
		return about("third-party", errors.New("--third-party needs --tpc-allow: the servers to copy with, or * for all"))
	case f.maxCopies < 0:
		return about("tpc-most", fmt.Errorf("--tpc-most %d: use a number of copies, or 0 for 100", f.maxCopies))
	case !f.third:
		return nil
	}
	o := endpoint.CopyOptions{Guard: *g, Most: f.maxCopies}
	if o.Pins, err = trust.ReadPins(f.pins); err != nil {
		return about("tpc-pin", fmt.Errorf("--tpc-pin: %w", err))
	}
	if f.authorities != "" {
		pool, err := trust.Authorities(f.authorities)
		if err != nil {
			return about("tpc-ca", fmt.Errorf("--tpc-ca: %w", err))
		}
		o.TLS = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	f.conf.Extensions = append(f.conf.Extensions, endpoint.NewCopier(o))
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
