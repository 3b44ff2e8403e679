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
	"github.com/spf13/pflag"

	"weir/internal/trust"
	"weir/internal/unit"
	"weir/monitor"
	"weir/scenario/flagfile"
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
	f.add(c, "")
	f.addAgent(c.Flags())
}

func (f *agentFlags) addAgent(fs *pflag.FlagSet) {
	e := &f.endpoint
	fs.StringVar(&f.o.Site, "site", "", "`NAME` of the site")
	fs.StringVar(&f.o.Root, "root", "", "`DIR` with all files of the site")
	fs.StringVar(&f.o.State, "state", "", "keep journal and keys in this `DIR` (default: a hidden one in the root)")
	fs.BoolVar(&f.o.NewRoot, "new-root", false, "the site has another root than before: verify the catalog's files there when they are needed")
	fs.StringVar(&f.o.SiteCA, "site-ca", "",
		"PEM `FILE` of authorities of other sites' certificates, besides those of the system; agents are identified by their pins")
	fs.IntVar(&f.o.Slots, "slots", 32, "copy at most `N` files at once")
	parsedFlag(fs, "buffer", "", "read, write and read back so many bytes at once (`SIZE`), from 16KiB to 64MiB (default 256KiB)",
		into(&f.o.Buffer, func(text string) (unit.Size, error) {
			size, err := unit.ParseSize(text)
			if err == nil && (size < mover.MinBuffer || size > mover.MaxBuffer) {
				err = errors.New("use 16KiB to 64MiB")
			}
			return size, err
		}))
	fs.BoolVar(&f.noEndpoint, "no-endpoint", false, "only connect out: other sites cannot connect to this one")
	fs.BoolVar(&f.noEndpoint, "no-door", false, "")
	_ = fs.MarkHidden("no-door") // the old name
	fs.StringVar(&e.Listen, "listen", "127.0.0.1:0", "`HOST:PORT` of the endpoint; port 0 lets the system choose")
	fs.StringVar(&e.URL, "url", "", "`URL` under which others reach the endpoint, if that is another one")
	fs.StringVar(&e.CertFile, "cert", "", "certificate of the endpoint, a PEM `FILE` (default: a self-signed one, "+
		"whose pin the coordinator distributes)")
	fs.StringVar(&e.KeyFile, "key", "", "key of --cert, a PEM `FILE`")
	fs.StringVar(&e.ClientCA, "client-ca", "", "PEM `FILE` of the authorities of clients' certificates; those of --client have all "+
		"rights at the endpoint")
	fs.StringArrayVar(&e.Clients, "client", nil,
		"admit this `NAME` of a client's certificate: a DNS name, a common name or the whole subject (repeatable)")
	fs.StringArrayVar(&e.Issuers, "issuer", nil,
		"also accept tokens of this issuer (`URL`) at the endpoint, WLCG profile: their scopes are their rights (repeatable)")
	fs.StringArrayVar(&e.Audience, "audience", nil, "audience of the tokens of --issuer, such as `https://HOST:PORT`, "+
		"besides the endpoint's URL (repeatable)")
	fs.StringSliceVar(&e.Peers, "tpc-allow", nil,
		"let holders of a token have the endpoint copy from and to `HOSTS` (COPY, HTTP-TPC): HOST, HOST:PORT, *.DOMAIN or *")
	fs.StringSliceVar(&f.pins, "tpc-pin", nil, "in third-party copies, accept a server by its certificate: `HOST:PORT=SHA256`; "+
		"several with commas")
	fs.BoolVar(&e.Private, "tpc-private", false, "allow third-party copies also with addresses of this machine and of private networks")
	fs.BoolVar(&f.private, "allow-private", false, "connect to sites also at addresses of private networks, "+
		"of this machine and link-local ones (default: where the coordinator or this site's own endpoint is at such an address; "+
		"never link-local ones)")
	parsedFlag(fs, "max-file", "", "refuse files of more than this `SIZE` at the endpoint, as in 100GB; "+
		"copies of leases have their own bound", into(&e.MaxFile, parseMaxFile))
	fs.BoolVar(&f.stdin, "while-stdin", false, "exit when standard input ends")
}

func (f *agentFlags) check() (err error) {
	e := &f.endpoint
	switch {
	case f.o.Site == "":
		return errors.New("name the site: --site NAME")
	case f.o.Root == "":
		return errors.New("name the folder with its files: --root DIR")
	case (e.CertFile == "") != (e.KeyFile == ""):
		return flagfile.About(cmp.Or(flagfile.Given("cert", e.CertFile), "key"), errors.New("--cert and --key must be given together"))
	case f.noEndpoint && (e.MaxFile > 0 || e.CertFile != "" || e.URL != "" || e.Listen != "127.0.0.1:0"):
		return flagfile.About("no-endpoint", errors.New("--no-endpoint: leave --listen, --url, --cert, --key and --max-file out"))
	case slices.ContainsFunc(e.Issuers, func(i string) bool { return !strings.HasPrefix(i, "https://") }):
		return flagfile.About("issuer", errors.New("--issuer: use its https URL, as in its tokens"))
	case (e.ClientCA == "") != (len(e.Clients) == 0):
		return flagfile.About(cmp.Or(flagfile.Given("client-ca", e.ClientCA), "client"),
			errors.New("--client-ca and --client must be given together"))
	case f.o.Slots < 1:
		return flagfile.About("slots", fmt.Errorf("--slots %d: use 1 or more", f.o.Slots))
	}
	if e.Pins, err = trust.ReadPins(f.pins); err != nil {
		return flagfile.About("tpc-pin", fmt.Errorf("--tpc-pin: %w", err))
	}
	if info, err := os.Stat(f.o.Root); err != nil {
		return flagfile.About("root", fmt.Errorf("--root: %w: name an existing folder; a new site may begin with an empty one", err))
	} else if !info.IsDir() {
		return flagfile.About("root", fmt.Errorf("--root %s is not a folder", f.o.Root))
	}
	return nil
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
	conf.Wait = 40 * time.Second // longer than a poll for work waits for its answer
	o := f.o
	o.Coordinator, o.Version, o.Log = conf, version(), s.log()
	if !f.noEndpoint {
		o.Endpoint = &f.endpoint
	}
	ctx, cancel := s.untilSignal(ctx, f.stdin)
	defer cancel()
	a, err := agent.New(ctx, o)
	if err != nil {
		return err
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
