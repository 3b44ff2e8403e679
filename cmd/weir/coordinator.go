package main

import (
	"cmp"
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
	"weir/internal/screen"
	"weir/internal/tpc"
	"weir/internal/unit"
	"weir/monitor"
	"weir/transfer/client"
	"weir/transfer/coordinator"
)

// coordinatorFlags are the flags of a coordinator.Config.
type coordinatorFlags struct {
	conf          coordinator.Config
	db            dbFlags
	approve       string
	lease         string
	patience      string
	keep          string
	endpoints     string
	probe         string
	names, shares []string
	issuers       []string
	stdin         bool
	file          configFile
	extra         coordinatorKeys
}

// shortestKeep is the shortest time for which ended requests are kept: the temporary files of failed ones are resumed for a day.
const shortestKeep = 7 * 24 * time.Hour

func coordinatorCommand(s streams) *cobra.Command {
	var f coordinatorFlags
	c := &cobra.Command{
		Use:   "coordinator",
		Short: "Run the transfer coordinator: catalog, queue and scheduler",
		Long: `Run the transfer coordinator: catalog, queue and scheduler, with a page for browsers.

Agents and commands talk to it over HTTPS; the bytes of files never pass it. All its state is
in one database: a file, or PostgreSQL. A coordinator that was killed continues from there.

Agents and commands of this user on this machine find it by themselves: it writes its address
and a token into a file that only this user can read. For others make tokens with weir
coordinator token. Two coordinators with --standby, the same PostgreSQL database, keys and URL
replace each other: one of them works, and the other one waits. With --config, settings come from a file, also sites, tokens and
notifications; flags override it. While a coordinator that is in that file answers, it stays there: give a
second one, and all that use it, WEIR_CONFIG=FILE in their environments. Without --cert its
certificate is self-signed, and identified by the pin that is printed.`,
		Example: `  weir coordinator
  weir coordinator --listen :9443 --url https://weir.example.org:9443 --approve-up-to 1TB
  weir coordinator --db postgres://weir@db.example.org/weir --share production=3 --share users=1
  weir coordinator --config /etc/weir/coordinator.yaml
  weir coordinator --db postgres://weir@db.example.org/weir --url https://weir.example.org:9443 --standby
  weir coordinator token --site B --life 365d --out b.token`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.file.load(c, f.check); err != nil {
				return err
			}
			return f.run(c.Context(), s)
		},
	}
	f.add(c)
	c.AddCommand(linkCommand(s), tokenCommand(s), moveDBCommand(s), backupCommand(s), restoreCommand(s))
	return c
}

func (f *coordinatorFlags) add(c *cobra.Command) {
	fs, conf := c.Flags(), &f.conf
	f.file.add(fs, &f.extra)
	fs.StringVar(&conf.State, "state", "", "keep keys, the administrator's token and the database in this `DIR` (default "+
		"~/.local/state/weir/coordinator)")
	f.db.add(fs, "db", "WEIR_DB",
		"keep all state in this database: a `FILE`, or postgres://USER@HOST/NAME, with the password in ~/.pgpass or PGPASSWORD (default: "+
			"a file in the state folder)")
	fs.BoolVar(&conf.Standby, "standby", false,
		"while another coordinator has the database, which is PostgreSQL's, wait and take over when that ends; with the same keys in --state")
	fs.StringVar(&conf.Listen, "listen", "127.0.0.1:9443", "listen at `HOST:PORT`; port 0 lets the system choose")
	fs.StringVar(&conf.URL, "url", "", "`URL` under which others reach it, if that is another one")
	fs.StringVar(&conf.Cert, "cert", "", "certificate, a PEM `FILE` (default: a self-signed one)")
	fs.StringVar(&conf.Key, "key", "", "key of --cert, a PEM `FILE`")
	fs.BoolVar(&conf.Plain, "plain", false, "speak http without TLS, on this machine only")
	fs.StringVar(&conf.CA, "client-ca", "", "PEM `FILE` of the authorities of users' and agents' certificates")
	fs.StringVar(&conf.SiteCA, "site-ca", "",
		"PEM `FILE` of authorities of sites' certificates, besides those of the system; agents that connect to these sites need it as well")
	fs.StringArrayVar(&f.names, "name", nil, "roles of the name in a certificate: `NAME=ROLE,ROLE` (repeatable)")
	fs.StringArrayVar(&f.issuers, "user-issuer", nil, "accept users' tokens of this issuer, an https `URL`: the scope fts:submit-transfer "+
		"gives the role submit; other roles and clients with secrets are set in a file (repeatable)")
	fs.StringVar(&f.approve, "approve-up-to", "", "approve requests of up to this `SIZE` automatically, as in 100GB; all: every request")
	fs.StringArrayVar(&f.shares, "share", nil, "weight of an activity: `NAME=WEIGHT` (repeatable; default 1)")
	fs.StringVar(&f.lease, "lease", "", "take a lease back if its agent is silent for this `TIME` (default 1m)")
	fs.StringVar(&f.patience, "patience", "", "let files fail after this `TIME` in which no site that has them was up (default 1d)")
	fs.StringVar(&f.keep, "keep", "", "remove ended requests, with their files and attempts, after this `TIME`, at least 7d (default: never)")
	fs.IntVar(&conf.Rules.Min, "link-min", 0, "at least `N` copies at once on a link (default 1)")
	fs.StringVar(&f.probe, "probe", "", "copy this `SHARE` of the files from another source than the one predicted to be fastest, so that "+
		"improvements are noticed, as in 5% (default 2%)")
	fs.IntVar(&conf.Rules.Max, "link-max", 0, "at most `N` copies at once on a link (default 64)")
	fs.StringVar(&conf.VO, "fts-vo", "weir", "virtual organization `NAME` of all users of the API of FTS3")
	fs.StringVar(&f.endpoints, "fts-endpoints", "public", "`WHERE` endpoints of jobs of the API of FTS3 may be: public, private (also in "+
		"private networks), local (also on this machine); sites that were added may be anywhere")
	fs.BoolVar(&f.stdin, "while-stdin", false, "exit when standard input ends")
}

// check reads the values of flags.
func (f *coordinatorFlags) check() (err error) {
	conf := &f.conf
	conf.Names, conf.Shares, conf.Issuers = map[string][]string{}, map[string]float64{}, nil
	f.extra.fill(conf, &f.file)
	if (conf.Cert == "") != (conf.Key == "") {
		return about(cmp.Or(given("cert", conf.Cert), "key"), errors.New("--cert and --key must be given together"))
	}
	if conf.Plain && conf.Cert != "" {
		return about("plain", errors.New("--plain and --cert: choose one"))
	}
	if conf.URL != "" {
		if u, err := url.Parse(conf.URL); err != nil || u.Host == "" || u.Scheme != "https" && !conf.Plain {
			return about("url", fmt.Errorf("--url %s: write it as https://HOST:PORT", line(conf.URL)))
		}
	}
	if f.approve == "all" {
		conf.Approve = -1
	} else if f.approve != "" {
		size, err := unit.ParseSize(f.approve)
		if err != nil {
			return about("approve-up-to", fmt.Errorf("--approve-up-to: %w (or all)", err))
		}
		conf.Approve = int64(size)
	}
	if err := f.times(); err != nil {
		return err
	}
	area, known := map[string]tpc.Area{"public": tpc.Public, "private": tpc.Network, "local": tpc.Loopback}[f.endpoints]
	if conf.JobArea = area; !known {
		return about("fts-endpoints", fmt.Errorf("--fts-endpoints %s: use public, private or local", line(f.endpoints)))
	}
	if f.probe != "" {
		share, err := unit.ParseFraction(f.probe)
		if err != nil || share <= 0 {
			return about("probe", fmt.Errorf("--probe %s: use a share above 0, as in 5%%", f.probe))
		}
		conf.Rules.Probe = float64(share)
	}
	if r := conf.Rules; r.Min < 0 || r.Max < 0 || r.Max > 0 && r.Min > r.Max {
		return about("link-max", errors.New("--link-min and --link-max: use 1 or more, and the larger one for --link-max"))
	}
	for _, text := range f.names {
		name, roles := cutLast(text)
		if name == "" || roles == "" {
			return fmt.Errorf("--name %s: use NAME=ROLE,ROLE, as in alice@example.org=weir.submit,weir.approve", line(text))
		}
		conf.Names[name] = strings.Split(roles, ",")
	}
	if err := f.userIssuers(); err != nil {
		return err
	}
	for _, text := range f.shares {
		name, weight := cutLast(text)
		w, err := strconv.ParseFloat(weight, 64)
		if err != nil || !(w > 0 && w <= 1e6) {
			return fmt.Errorf("--share %s: use NAME=WEIGHT with a weight above 0, as in production=3", line(text))
		}
		conf.Shares[name] = w
	}
	return nil
}

// userIssuers reads the issuers.
func (f *coordinatorFlags) userIssuers() error {
	for _, address := range f.issuers {
		i := coordinator.Issuer{URL: address}
		if err := i.Check(); err != nil {
			return fmt.Errorf("--user-issuer: %w", err)
		}
		f.conf.Issuers = append(f.conf.Issuers, i)
	}
	return nil
}

// times reads the flags that are times.
func (f *coordinatorFlags) times() (err error) {
	conf := &f.conf
	if f.lease != "" {
		if conf.Lease, err = parseTime("--lease", f.lease, 2*time.Second); err != nil {
			return about("lease", err)
		}
	}
	if f.patience != "" {
		if conf.Patience, err = parseTime("--patience", f.patience, 1); err != nil {
			return about("patience", err)
		}
	}
	if f.keep != "" {
		if conf.Keep, err = parseTime("--keep", f.keep, shortestKeep); err != nil {
			return about("keep", err)
		}
	}
	return nil
}

// cutLast cuts at the last =: subjects of certificates contain others.
func cutLast(text string) (name, value string) {
	i := max(strings.LastIndexByte(text, '='), 0)
	return text[:i], strings.TrimPrefix(text[i:], "=")
}

// stateFolder returns dir, or the folder of this user's coordinator (XDG Base Directory
// Specification).
func stateFolder(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("cannot determine the state directory (name it with --state DIR): %w", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "weir", "coordinator"), nil
}

func (f *coordinatorFlags) run(ctx context.Context, s streams) (err error) {
	if _, _, err := monitor.RaiseOpenFiles(); err != nil {
		return err
	}
	conf := f.conf
	if conf.DB, err = f.db.find(s); err != nil {
		return err
	}
	if conf.State, err = stateFolder(conf.State); err != nil {
		return err
	}
	conf.Version, conf.Log = version(), s.log()
	coordinator.TuneMemory()
	ctx, cancel := s.untilSignal(ctx, f.stdin)
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
	if screen.IsTerminal(s.err) { // other users may read a log
		s.printErr("page, for users of this machine: %s\n", c.Link(admin))
	} else {
		s.printErr("page: %s (weir coordinator link prints an address that signs in)\n", c.URL())
	}
	return c.Run(ctx)
}

// claim makes commands and agents of this user on this machine find the coordinator.
func claim(ctx context.Context, conf client.Config, s streams) {
	path, err := client.File()
	var done client.Claim
	var other string
	if err == nil {
		done, other, err = conf.Claim(ctx, path)
	}
	switch other = line(other); {
	case err != nil:
		s.printErr("weir: commands on this machine do not find the coordinator by themselves: %v\n", err)
	case done == client.OtherRemote:
		s.printErr("weir: %s names another coordinator, %s, and is not changed: use --coordinator and --token-file for this one\n", path, other)
	case done == client.OtherLocal:
		s.printErr("weir: commands of this user use another coordinator, which runs at %s\n"+
			"weir: start this one, and the commands for it, with a file of its own in the environment: WEIR_CONFIG=FILE\n", other)
	case done == client.Replaced:
		s.printErr("weir: commands of this user now use this coordinator: the one at %s does not answer any more\n", other)
	}
}

func moveDBCommand(s streams) *cobra.Command {
	var state string
	var from, to dbFlags
	c := &cobra.Command{
		Use:   "move-db --to ADDRESS",
		Short: "Copy the state of a coordinator into another database",
		Long: `Copy the state of a coordinator (sites, datasets, requests, files, leases and attempts) into
another database, which must be empty: from SQLite to PostgreSQL when a site grows, or back.

Stop the coordinator first; agents wait for it, and copies continue. The move is all or
nothing, and what was copied is read again and compared. The old database is not changed. Then
start the coordinator with the same --state and the new --db.`,
		Example: `  weir coordinator move-db --to postgres://weir@db.example.org/weir
  weir coordinator move-db --state /var/lib/weir --to-file db.address
  weir coordinator move-db --from-file db.address --to sqlite:weir.db`,
		Args: cobra.NoArgs,
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
			folder, err := stateFolder(state)
			if err != nil {
				return err
			}
			ctx, cancel := s.untilSignal(c.Context(), false)
			defer cancel()
			all, err := coordinator.MoveDB(ctx, folder, source, target, func(table string) { s.say("%s\n", table) })
			if err != nil {
				return fmt.Errorf("nothing was copied: %w", err)
			}
			t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', tabwriter.AlignRight)
			_, _ = fmt.Fprintln(t, "ROWS\t TABLE") // Flush returns the error
			for _, one := range all {
				_, _ = fmt.Fprintf(t, "%d\t %s\n", one.Rows, one.Table)
			}
			if err := t.Flush(); err != nil {
				return err
			}
			s.printErr("All rows are copied. Start the coordinator with the same --state and --db %s; never use both databases.\n",
				line(db.Public(target)))
			return nil
		},
	}
	fs := c.Flags()
	fs.StringVar(&state, "state", "", "`DIR` of the coordinator's state (default ~/.local/state/weir/coordinator)")
	from.add(fs, "from", "", "copy this database: a `FILE`, or postgres://USER@HOST/NAME (default: the file in the state folder)")
	to.add(fs, "to", "", "into this empty one: a `FILE`, or postgres://USER@HOST/NAME, with the password in ~/.pgpass or PGPASSWORD")
	quietFlag(c, &s.quiet)
	return c
}
