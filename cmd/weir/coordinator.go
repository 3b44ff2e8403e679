package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/db"
	"weir/internal/unit"

	"weir/monitor"
	"weir/transfer/client"
	"weir/transfer/coordinator"
)

// coordinatorFlags are coordinator.Config as the command line says it.
type coordinatorFlags struct {
	conf          coordinator.Config
	db            dbFlags
	approve       string
	lease         string
	patience      string
	names, shares []string
	stdin         bool
}

func coordinatorCommand(s streams, signals signalSource) *cobra.Command {
	var f coordinatorFlags
	c := &cobra.Command{
		Use:   "coordinator",
		Short: "Keep what is where and what is to be moved, and have sites move it",
		Long: `Runs the coordinator: the catalog of datasets, the requests and their files, the
scheduler, a page for browsers. Agents and commands ask it over HTTPS; bytes of files
never pass it. It keeps everything in one database: a file, or PostgreSQL. A
coordinator that was killed goes on with what it finds there.

On this machine agents and commands of this user find it by themselves: it writes
where it is, and a token, into a file that only this user can read. For others make
tokens with weir coordinator token. While a coordinator that was written there before
answers it stays there: a second one is found with WEIR_CONFIG=FILE in the environment of
all of them. Its certificate is its own, and known by the pin
that is printed, unless --cert names one.`,
		Example: `  weir coordinator
  weir coordinator --listen :9443 --url https://weir.example.org:9443 --approve-up-to 1TB
  weir coordinator --db postgres://weir@db.example.org/weir --share production=3 --share users=1
  weir coordinator token --site B --life 365d --out b.token`,
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return usageError(c, err)
			}
			return f.run(c.Context(), s, signals)
		},
	}
	fs, conf := c.Flags(), &f.conf
	fs.StringVar(&conf.State, "state", "", "keep keys, the administrator's token and the database in this `DIR` (default ~/.local/state/weir/coordinator)")
	f.db.add(fs, "db", "WEIR_DB", "keep everything in this database: a `FILE`, or postgres://USER@HOST/NAME, with the password in ~/.pgpass or PGPASSWORD (default: a file in the state folder)")
	fs.StringVar(&conf.Listen, "listen", "127.0.0.1:9443", "`HOST:PORT`; port 0 lets the system choose")
	fs.StringVar(&conf.URL, "url", "", "`URL` under which others reach it, if that is another one")
	fs.StringVar(&conf.Cert, "cert", "", "certificate, a PEM `FILE` (default: one of its own)")
	fs.StringVar(&conf.Key, "key", "", "its key, a PEM `FILE`")
	fs.BoolVar(&conf.Plain, "plain", false, "speak http without TLS, on this machine only")
	fs.StringVar(&conf.CA, "client-ca", "", "PEM `FILE` of the authorities whose certificates users and agents may show")
	fs.StringVar(&conf.SiteCA, "site-ca", "", "PEM `FILE` of authorities of sites' certificates, besides those of the system; agents that are to reach these sites need it, too")
	fs.StringArrayVar(&f.names, "name", nil, "what the name in a certificate may do: `NAME=ROLE,ROLE` (repeatable)")
	fs.StringVar(&f.approve, "approve-up-to", "", "requests of up to this `SIZE`, as in 100GB, need no approval; all: none does")
	fs.StringArrayVar(&f.shares, "share", nil, "weight of an activity: `NAME=WEIGHT` (repeatable; 1 where nothing is said)")
	fs.StringVar(&f.lease, "lease", "", "give a copy up whose agent says nothing for this `TIME` (default 1m)")
	fs.StringVar(&f.patience, "patience", "", "let files fail after this `TIME` in which no site that has them was up (default 1d)")
	fs.IntVar(&conf.Rules.Min, "link-min", 0, "at least `N` copies at once on a link (default 1)")
	fs.IntVar(&conf.Rules.Max, "link-max", 0, "at most `N` copies at once on a link (default 64)")
	fs.BoolVar(&f.stdin, "while-stdin", false, "end when standard input ends")
	c.AddCommand(linkCommand(s), tokenCommand(s), moveDBCommand(s, signals))
	return c
}

// check reads what is written with units.
func (f *coordinatorFlags) check() error {
	conf := &f.conf
	if (conf.Cert == "") != (conf.Key == "") {
		return errors.New("--cert and --key belong together")
	}
	if conf.Plain && conf.Cert != "" {
		return errors.New("--plain and --cert: choose one")
	}
	if conf.URL != "" {
		if u, err := url.Parse(conf.URL); err != nil || u.Host == "" || u.Scheme != "https" && !conf.Plain {
			return fmt.Errorf("--url %s: write it as https://HOST:PORT", line(conf.URL))
		}
	}
	if f.approve == "all" {
		conf.Approve = -1
	} else if f.approve != "" {
		size, err := unit.ParseSize(f.approve)
		if err != nil {
			return fmt.Errorf("--approve-up-to: %w (or all)", err)
		}
		conf.Approve = int64(size)
	}
	if f.lease != "" {
		d, err := unit.ParseDuration(f.lease)
		if err != nil || time.Duration(d) < 2*time.Second {
			return fmt.Errorf("--lease %s: name a time of 2s or more, such as 1m", f.lease)
		}
		conf.Lease = time.Duration(d)
	}
	if f.patience != "" {
		d, err := unit.ParseDuration(f.patience)
		if err != nil || d <= 0 {
			return fmt.Errorf("--patience %s: name a time, such as 12h", f.patience)
		}
		conf.Patience = time.Duration(d)
	}
	if conf.Rules.Min < 0 || conf.Rules.Max < 0 || conf.Rules.Max > 0 && conf.Rules.Min > conf.Rules.Max {
		return errors.New("--link-min and --link-max: use 1 or more, and the larger one for --link-max")
	}
	conf.Names, conf.Shares = map[string][]string{}, map[string]float64{}
	for _, text := range f.names {
		name, roles, ok := cutLast(text)
		if !ok {
			return fmt.Errorf("--name %s: use NAME=ROLE,ROLE, as in alice@example.org=weir.submit,weir.approve", line(text))
		}
		conf.Names[name] = strings.Split(roles, ",")
	}
	for _, text := range f.shares {
		name, weight, _ := cutLast(text)
		w, err := strconv.ParseFloat(weight, 64)
		if err != nil || !(w > 0 && w <= 1e6) {
			return fmt.Errorf("--share %s: use NAME=WEIGHT with a weight above 0, as in production=3", line(text))
		}
		conf.Shares[name] = w
	}
	return nil
}

// cutLast cuts at the last =: subjects of certificates have some in them.
func cutLast(text string) (name, value string, ok bool) {
	i := strings.LastIndexByte(text, '=')
	if i <= 0 {
		return "", "", false
	}
	return text[:i], text[i+1:], text[i+1:] != ""
}

// stateFolder is where services of a user keep what must stay (XDG Base Directory
// Specification).
func stateFolder(name string) (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("where is the state to be kept? Say --state DIR: %w", err)
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "weir", name), nil
}

func (f *coordinatorFlags) run(ctx context.Context, s streams, signals signalSource) (err error) {
	if _, _, err := monitor.RaiseOpenFiles(); err != nil {
		return err
	}
	conf := f.conf
	if conf.DB, err = f.db.find(s); err != nil {
		return err
	}
	if conf.State == "" {
		if conf.State, err = stateFolder("coordinator"); err != nil {
			return err
		}
	}
	conf.Version, conf.Log = version(), s.log()
	coordinator.TuneMemory()
	ctx, cancel := untilSignal(ctx, signals, s.in, f.stdin)
	defer cancel()
	c, err := coordinator.Open(ctx, conf)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	admin, err := c.Admin()
	if err != nil {
		return err
	}
	local := client.Config{URLs: []string{c.URL()}, Pin: c.Pin(), Token: admin}
	claim(ctx, local, s)
	if _, err := fmt.Fprintf(s.out, "coordinator at %s\n", local.Address()); err != nil {
		return err
	}
	if isTerminal(s.err) { // logs are read by others
		s.tell("its page, for who is at this machine: %s\n", c.Link(admin))
	} else {
		s.tell("its page: %s (weir coordinator link prints an address that signs in)\n", c.URL())
	}
	return c.Run(ctx)
}

// claim makes commands and agents of this user on this machine find the coordinator.
func claim(ctx context.Context, conf client.Config, s streams) {
	path, err := client.File()
	if err != nil {
		s.tell(claimFailed, err)
		return
	}
	done, other, err := conf.Claim(ctx, path)
	switch other = line(other); {
	case err != nil:
		s.tell(claimFailed, err)
	case done == client.OtherRemote:
		s.tell("weir: %s names another coordinator, %s: it stays so; use --coordinator and --token-file for this one\n", path, other)
	case done == client.OtherLocal:
		s.tell("weir: commands of this user ask another coordinator, which runs at %s: it stays so\n"+
			"weir: for this one start it, and what is to ask it, with a file of its own in the environment: WEIR_CONFIG=FILE\n", other)
	case done == client.Replaced:
		s.tell("weir: commands of this user ask this coordinator from now on: the one at %s does not answer any more\n", other)
	}
}

const claimFailed = "weir: commands on this machine do not find the coordinator by themselves: %v\n"

func moveDBCommand(s streams, signals signalSource) *cobra.Command {
	var state string
	var from, to dbFlags
	c := &cobra.Command{
		Use:   "move-db --to ADDRESS",
		Short: "Copy all that a coordinator keeps into another database",
		Long: `Copies sites, datasets, requests, files, leases and attempts from one database into
another one, which is empty: from SQLite to PostgreSQL when a site grows, or back.
The coordinator is stopped meanwhile; agents wait for it, and copies go on. It is all
or nothing, and what is there is read again and compared. The old database stays as
it is. The coordinator is then started with the same --state and the new --db.`,
		Example: `  weir coordinator move-db --to postgres://weir@db.example.org/weir
  weir coordinator move-db --state /var/lib/weir --to-file db.address
  weir coordinator move-db --from-file db.address --to sqlite:weir.db`,
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			source, err := from.find(s)
			if err != nil {
				return err
			}
			target, err := to.find(s)
			if err != nil {
				return err
			}
			if target == "" {
				return usageError(c, errors.New("name the database to copy to: --to postgres://USER@HOST/NAME"))
			}
			if state == "" {
				if state, err = stateFolder("coordinator"); err != nil {
					return err
				}
			}
			ctx, cancel := untilSignal(c.Context(), signals, nil, false)
			defer cancel()
			all, err := coordinator.MoveDB(ctx, state, source, target, func(table string) { s.say("%s\n", table) })
			if err != nil {
				return fmt.Errorf("nothing was copied: %w", err)
			}
			t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', tabwriter.AlignRight)
			_, _ = fmt.Fprintln(t, "ROWS\t TABLE") // Flush tells
			for _, one := range all {
				_, _ = fmt.Fprintf(t, "%d\t %s\n", one.Rows, one.Table)
			}
			if err := t.Flush(); err != nil {
				return err
			}
			s.tell("all is there. Start the coordinator with the same --state and --db %s; the old database stays as it was: never use both.\n", line(db.Public(target)))
			return nil
		},
	}
	fs := c.Flags()
	fs.StringVar(&state, "state", "", "the `DIR` of the coordinator's state (default ~/.local/state/weir/coordinator)")
	from.add(fs, "from", "", "copy this database: a `FILE`, or postgres://USER@HOST/NAME (default: the file in the state folder)")
	to.add(fs, "to", "", "into this one, which is empty: a `FILE`, or postgres://USER@HOST/NAME, with the password in ~/.pgpass or PGPASSWORD")
	quietFlag(c, &s.quiet)
	return c
}
