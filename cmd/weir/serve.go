package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/unit"
	"weir/monitor"
	"weir/serve"
)

// serveFlags are serve.Config as the command line says it.
type serveFlags struct {
	conf                    serve.Config
	synthetic, events       string
	passwordFile, tokenFile string
	rate, totalRate         string
	whileStdin              bool
	cores                   int
	rights                  rightsFlags
}

func serveCommand(s streams, signals signalSource) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve [DIR]",
		Short: "Serve a folder, or invented files, over HTTP and WebDAV",
		Long: `The built-in data server: ranges, uploads that appear when they are whole,
digests, WebDAV, /metrics. It listens on the loopback interface unless told
otherwise. The first line it prints is "serving URL".

Invented files are called file000000.dat and so on. Their bytes follow from the
seed and the name and are made as they are read, so that files of any size need
neither disk nor memory, and clients can check what they get.

With --issuer it takes WLCG tokens: storage.read:/PATH reads below PATH,
storage.create makes new files and changes none, storage.modify does both.
With --third-party it copies from and to other servers (XRootD, dCache, StoRM,
EOS, another weir) for clients such as gfal-copy and FTS, checksums compared;
only with servers of --tpc-allow, and with private addresses only if --tpc-private
says so.`,
		Example: `  weir serve /data --listen 127.0.0.1:8080
  weir serve --synthetic 1000x1MiB
  weir serve --events 50000x40KiB
  weir serve /data --listen :8443 --cert host.pem --key host.key --token-file token
  weir serve /data --listen :8443 --cert host.pem --key host.key --issuer https://iam.example.org/ --audience https://se.example.org:8443 \
      --third-party --tpc-allow '*.example.org'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			conf, err := f.config(args, s)
			if err != nil {
				return exit{exitUsage, err}
			}
			if f.cores > 0 {
				if err := useCores(f.cores); err != nil {
					return fmt.Errorf("--cores: %w", err)
				}
			}
			ctx, cancel := untilSignal(c.Context(), signals, s.in, f.whileStdin)
			defer cancel()
			return serveUntil(ctx, conf, s)
		},
	}
	f.add(c)
	return c
}

func (f *serveFlags) add(c *cobra.Command) {
	fs, conf := c.Flags(), &f.conf
	fs.StringVar(&f.synthetic, "synthetic", "", "invent files: `COUNTxSIZE`, several with commas, as in 1000x1MiB,10x1GiB")
	fs.StringVar(&f.events, "events", "", "invent files of events for analysis jobs: `EVENTSxSIZE`, one file, as in 50000x40KiB; or FILESxEVENTSxSIZE")
	fs.Uint64Var(&conf.Seed, "seed", 0, "what invented files are made from")
	fs.StringVar(&conf.Listen, "listen", "127.0.0.1:0", "`HOST:PORT`; port 0 lets the system choose")
	fs.BoolVar(&conf.Public, "public", false, "allow an address beyond this machine without TLS and credentials")
	fs.StringVar(&conf.CertFile, "cert", "", "server certificate, a PEM `FILE`; with --key the server speaks TLS")
	fs.StringVar(&conf.KeyFile, "key", "", "its key, a PEM `FILE`")
	fs.StringVar(&conf.User, "user", "", "ask for this user `NAME` and the password of --password-file")
	fs.StringVar(&f.passwordFile, "password-file", "", "`FILE` with the password")
	fs.StringVar(&f.tokenFile, "token-file", "", "ask for the bearer token in `FILE`")
	fs.BoolVar(&conf.ReadOnly, "read-only", false, "refuse whatever changes files")
	fs.BoolVar(&conf.Sync, "sync", false, "answer an upload when it is on stable storage")
	fs.StringVar(&f.rate, "rate", "", "limit each connection, as in `10MB/s`")
	fs.StringVar(&f.totalRate, "total-rate", "", "limit all connections together, as in `1Gbit/s`")
	fs.DurationVar(&conf.Delay, "delay", 0, "pause before each answer, as in `5ms`")
	f.rights.add(c, conf)
	fs.IntVar(&f.cores, "cores", 0, "run on at most `N` processors; 0: all. With 1, a server that cannot use several, as many were")
	fs.BoolVar(&f.whileStdin, "while-stdin", false, "end when standard input ends")
}

func (f *serveFlags) config(args []string, s streams) (serve.Config, error) {
	conf := f.conf
	if len(args) == 1 {
		conf.Dir = args[0]
	}
	err := f.invent(&conf)
	if err != nil {
		return conf, err
	}
	if f.cores < 0 {
		return conf, fmt.Errorf("--cores: %d: name a number of processors, or 0 for all", f.cores)
	}
	if conf.Password, err = fileText(f.passwordFile); err != nil {
		return conf, fmt.Errorf("--password-file: %w", err)
	}
	if conf.Token, err = fileText(f.tokenFile); err != nil {
		return conf, fmt.Errorf("--token-file: %w", err)
	}
	if conf.Rate, err = bytesPerSecond(f.rate); err != nil {
		return conf, fmt.Errorf("--rate: %w", err)
	}
	if conf.TotalRate, err = bytesPerSecond(f.totalRate); err != nil {
		return conf, fmt.Errorf("--total-rate: %w", err)
	}
	if err = f.rights.set(&conf); err != nil {
		return conf, err
	}
	conf.Log = s.log()
	return conf, nil
}

// invent says which files are invented.
func (f *serveFlags) invent(conf *serve.Config) (err error) {
	if (conf.Dir == "") == (f.synthetic+f.events == "") {
		return errors.New("serve needs a folder or invented files (--synthetic COUNTxSIZE, --events EVENTSxSIZE), and not both")
	}
	if f.synthetic != "" {
		if conf.Synthetic, err = serve.ParseSynthetic(f.synthetic); err != nil {
			return fmt.Errorf("--synthetic: %w", err)
		}
	}
	if f.events != "" {
		set, err := serve.ParseEvents(f.events)
		if err != nil {
			return fmt.Errorf("--events: %w", err)
		}
		conf.Synthetic = append(conf.Synthetic, set)
	}
	return nil
}

func fileText(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := os.ReadFile(path)
	return strings.TrimSpace(string(b)), err
}

func bytesPerSecond(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	r, err := unit.ParseBitrate(text)
	return int64(r / 8), err
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
