package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/trust"
	"weir/monitor"
	"weir/transfer/agent"
)

// agentFlags are agent.Options as the command line says it.
type agentFlags struct {
	clientFlags
	o      agent.Options
	door   agent.EndpointOptions
	noDoor bool
	most   string
	pins   []string
	near   bool // --allow-private, if it was given
	stdin  bool // its end ends the agent
}

func agentCommand(s streams, signals signalSource) *cobra.Command {
	var f agentFlags
	c := &cobra.Command{
		Use:   "agent --site NAME --root DIR",
		Short: "Be a site: serve a folder, and carry files between it and other sites",
		Long: `Runs a site: its door, through which other sites read and write files below the
folder, and its mover, which pulls and pushes what the coordinator asks for. Files are
copied under temporary names in DIR/.weir, verified, then renamed; nothing that is
there is ever replaced or removed.

The agent dials out to the coordinator. A site behind a firewall runs with --no-door:
it pulls from and pushes to the doors of others, and needs no tunnel. Beyond this
machine the door speaks TLS, with a certificate of its own if none is given. It lets
in who shows a token of the coordinator for just that file.

On the machine of a coordinator nothing but site and root need to be said. Elsewhere
its URL, pin and a token for this site are printed by weir coordinator token.

While the coordinator is away copies go on. An agent that was ended, in whatever
way, resumes what it had begun when it is started again.`,
		Example: `  weir agent --site A --root /data/a
  weir agent --site B --root /data/b --coordinator https://weir.example.org:9443#PIN --token-file b.token --listen :9444
  weir agent --site C --root /data/c --coordinator https://weir.example.org:9443#PIN --token-file c.token --no-door`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return usageError(c, err)
			}
			if c.Flags().Changed("allow-private") {
				f.o.Private = &f.near
			}
			return f.run(c.Context(), s, signals)
		},
	}
	f.add(c, "")
	fs := c.Flags()
	fs.StringVar(&f.o.Site, "site", "", "`NAME` of the site")
	fs.StringVar(&f.o.Root, "root", "", "the `DIR` that all files of the site are below")
	fs.StringVar(&f.o.State, "state", "", "keep journal and keys in this `DIR` (default: a hidden one in the root)")
	fs.BoolVar(&f.o.NewRoot, "new-root", false, "the site has another root than before: what the catalog believes to be there is looked for when it is needed")
	fs.StringVar(&f.o.SiteCA, "site-ca", "", "PEM `FILE` of authorities of other sites' certificates, besides those of the system; agents are known by their pins")
	fs.IntVar(&f.o.Slots, "slots", 32, "copy at most `N` files at once")
	fs.BoolVar(&f.noDoor, "no-door", false, "only dial out: nobody can connect to this site")
	fs.StringVar(&f.door.Listen, "listen", "127.0.0.1:0", "`HOST:PORT` of the door; port 0 lets the system choose")
	fs.StringVar(&f.door.URL, "url", "", "`URL` under which others reach the door, if that is another one")
	fs.StringVar(&f.door.CertFile, "cert", "", "certificate of the door, a PEM `FILE` (default: one of its own, which the coordinator tells others)")
	fs.StringVar(&f.door.KeyFile, "key", "", "its key, a PEM `FILE`")
	fs.StringVar(&f.door.ClientCA, "client-ca", "", "PEM `FILE` of the authorities of clients' certificates; those of --client may do everything at the door")
	fs.StringArrayVar(&f.door.Clients, "client", nil, "let in this `NAME` of a client's certificate: a DNS name, a common name or the whole subject (repeatable)")
	fs.StringArrayVar(&f.door.Issuers, "issuer", nil, "the door takes tokens of this issuer, too (`URL`), WLCG profile: what they may do is in their scopes (repeatable)")
	fs.StringArrayVar(&f.door.Audience, "audience", nil, "what these tokens call the door, such as `https://HOST:PORT`, beside its URL (repeatable)")
	fs.StringSliceVar(&f.door.Peers, "tpc-allow", nil, "let who holds a token have the door copy from and to `HOSTS` (COPY, HTTP-TPC): HOST, HOST:PORT, *.DOMAIN or *")
	fs.StringSliceVar(&f.pins, "tpc-pin", nil, "in these copies, know a server by its certificate, whoever signed it: `HOST:PORT=SHA256`; several with commas")
	fs.BoolVar(&f.door.Private, "tpc-private", false, "these copies also with addresses of this machine and of private networks")
	fs.BoolVar(&f.near, "allow-private", false, "connect to sites also at addresses of private networks, of this machine and link-local ones (default: where the coordinator, or this site's own door, is at such an address; never link-local ones)")
	fs.StringVar(&f.most, "max-file", "", "take no file of more than this `SIZE`, as in 100GB, at the door; copies that the coordinator orders have their own bound")
	fs.BoolVar(&f.stdin, "while-stdin", false, "end when standard input ends")
	return c
}

func (f *agentFlags) check() error {
	switch {
	case f.o.Site == "":
		return errors.New("which site is it? Name it: --site NAME")
	case f.o.Root == "":
		return errors.New("where are its files? Name a folder: --root DIR")
	case (f.door.CertFile == "") != (f.door.KeyFile == ""):
		return errors.New("--cert and --key belong together")
	case f.noDoor && (f.most != "" || f.door.CertFile != "" || f.door.URL != "" || f.door.Listen != "127.0.0.1:0"):
		return errors.New("--no-door: leave --listen, --url, --cert, --key and --max-file out")
	case slices.ContainsFunc(f.door.Issuers, func(i string) bool { return !strings.HasPrefix(i, "https://") }):
		return errors.New("--issuer: name it by its https URL, as its tokens have it")
	case (f.door.ClientCA == "") != (len(f.door.Clients) == 0):
		return errors.New("--client-ca and --client belong together")
	case f.o.Slots < 1:
		return fmt.Errorf("--slots %d: use 1 or more", f.o.Slots)
	}
	var err error
	if f.door.Pins, err = trust.ReadPins(f.pins); err != nil {
		return fmt.Errorf("--tpc-pin: %w", err)
	}
	if f.door.MaxFile, err = maxFile(f.most); err != nil {
		return err
	}
	if info, err := os.Stat(f.o.Root); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--root %s: there is no such folder: make it if the site is to be empty", f.o.Root)
	} else if err != nil {
		return fmt.Errorf("--root: %w", err)
	} else if !info.IsDir() {
		return fmt.Errorf("--root %s is no folder", f.o.Root)
	}
	return nil
}

func (f *agentFlags) run(ctx context.Context, s streams, signals signalSource) error {
	if _, _, err := monitor.RaiseOpenFiles(); err != nil {
		return err
	}
	conf, err := f.config()
	if err != nil {
		return err
	}
	if path := cmp.Or(f.tokenFile, os.Getenv("WEIR_TOKEN_FILE")); path != "" {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
			s.tell("weir: the token in %s can be read by others (mode %04o): chmod 600 %s\n", path, info.Mode().Perm(), path)
		}
	}
	conf.Wait = 40 * time.Second // longer than a question for work waits for its answer
	o := f.o
	o.Coordinator, o.Version = conf, version()
	o.Log = s.log()
	if !f.noDoor {
		o.Endpoint = &f.door
	}
	ctx, cancel := untilSignal(ctx, signals, s.in, f.stdin)
	defer cancel()
	a, err := agent.New(ctx, o)
	if err != nil {
		return err
	}
	where := "without a door"
	if a.URL() != "" {
		where = "at " + a.URL()
	}
	if _, err := fmt.Fprintf(s.out, "site %s %s\n", o.Site, where); err != nil {
		return errors.Join(err, a.Close())
	}
	return errors.Join(withAdvice(conf.URLs[0], a.Run(ctx)), a.Close())
}

// untilSignal is ctx until the first signal, or the end of standard input if
// that counts.
func untilSignal(ctx context.Context, signals signalSource, in io.Reader, whileIn bool) (context.Context, context.CancelFunc) {
	caught := signals.listen()
	ctx, end := context.WithCancelCause(ctx)
	cancel := func() { end(nil) }
	if whileIn {
		go func() {
			_, _ = io.Copy(io.Discard, in) // its end is what matters
			cancel()
		}()
	}
	go func() {
		select {
		case by := <-caught:
			end(interruption{by})
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
