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
	"github.com/spf13/pflag"

	"weir/internal/db"
	"weir/internal/screen"
	"weir/internal/tpc"
	"weir/internal/unit"
	"weir/monitor"
	"weir/scenario/flagfile"
	"weir/transfer/client"
	"weir/transfer/coordinator"
	"weir/transfer/settings"
)

// coordinatorFlags are the flags of a coordinator.Config.
type coordinatorFlags struct {
	conf  coordinator.Config
	db    dbFlags
	stdin bool
	file  flagfile.File
	extra settings.Keys

	streamed int
}

// shortestKeep is the shortest time for which ended requests are kept: the temporary files of failed ones are resumed for a day.
const shortestKeep = 7 * 24 * time.Hour

func coordinatorCommand(s streams) *cobra.Command {
	var f coordinatorFlags
	c := command("coordinator", cobra.NoArgs, func(c *cobra.Command, _ []string) error {
		if err := loadConfig(c, &f.file, f.check); err != nil {
			return err
		}
		return f.run(c.Context(), s)
	})
	f.add(c)
	c.AddCommand(linkCommand(s), tokenCommand(s), moveDBCommand(s), backupCommand(s), restoreCommand(s))
	return c
}

func (f *coordinatorFlags) add(c *cobra.Command) {
	fs, conf := c.Flags(), &f.conf
	conf.Names, conf.VOMSRoles, conf.Shares = map[string][]string{}, map[string][]string{}, map[string]float64{}
	conf.JobArea = tpc.Public
	f.file.Add(fs, &f.extra, "name", "share", "user-issuer", "voms-role")
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
	fs.Func("name", "roles of the name in a certificate: `NAME=ROLE,ROLE` (repeatable)", f.addName)
	fs.StringVar(&conf.VOMSDir, "vomsdir", "", "accept VOMS attributes in users' proxies of the servers in this `DIR`, which has files "+
		"VO/HOST.lsc; with --client-ca")
	fs.Func("voms-role", "roles of a VOMS attribute: `FQAN=ROLE,ROLE`, as in /atlas/Role=production=weir.submit (repeatable)", f.addVOMSRole)
	fs.Func("user-issuer", "accept users' tokens of this issuer, an https `URL`: the scope fts:submit-transfer "+
		"gives the role submit; other roles and clients with secrets are set in a file (repeatable)", f.addIssuer)
	parsedFlag(fs, "approve-up-to", "", "approve requests of up to this `SIZE` automatically, as in 100GB; all: every request",
		into(&conf.Approve, func(text string) (unit.Size, error) {
			if text == "all" {
				return -1, nil
			}
			size, err := unit.ParseSize(text)
			if err != nil {
				err = fmt.Errorf("%w (or all)", err)
			}
			return size, err
		}))
	fs.Func("share", "weight of an activity: `NAME=WEIGHT` (repeatable; default 1)", f.addShare)
	parsedFlag(fs, "lease", "", "take a lease back if its agent is silent for this `TIME` (default 1m)", parseTime(&conf.Lease, 2*time.Second))
	parsedFlag(fs, "patience", "", "let files fail after this `TIME` in which no site that has them was up (default 1d)",
		parseTime(&conf.Patience, 1))
	parsedFlag(fs, "keep", "", "remove ended requests, with their files and attempts, after this `TIME`, at least 7d (default: never)",
		parseTime(&conf.Keep, shortestKeep))
	fs.IntVar(&conf.Rules.Min, "link-min", 0, "at least `N` copies at once on a link (default 1)")
	parsedFlag(fs, "probe", "", "copy this `SHARE` of the files from another source than the one predicted to be fastest, so that "+
		"improvements are noticed, as in 5% (default 2%)", into(&conf.Rules.Probe, func(text string) (unit.Fraction, error) {
		share, err := unit.ParseFraction(text)
		if err == nil && share <= 0 {
			err = errors.New("use a share above 0, as in 5%")
		}
		return share, err
	}))
	fs.IntVar(&conf.Rules.Max, "link-max", 0, "at most `N` copies at once on a link (default 64)")
	f.addCopies(fs)
	fs.BoolVar(&f.stdin, "while-stdin", false, "exit when standard input ends")
}

// addCopies adds the flags of the API of FTS3 and of streamed copies.
func (f *coordinatorFlags) addCopies(fs *pflag.FlagSet) {
	conf := &f.conf
	fs.StringVar(&conf.VO, "fts-vo", "weir", "virtual organization `NAME` of all users of the API of FTS3")
	fs.IntVar(&f.streamed, "streamed-copies", 64, "copy up to `N` files at once through the coordinator, between endpoints that cannot copy "+
		"from each other; 0: such files fail")
	parsedFlag(fs, "fts-endpoints", "public", "`WHERE` endpoints of jobs of the API of FTS3 may be: public, private (also in "+
		"private networks), local (also on this machine); sites that were added may be anywhere", func(text string) error {
		area, known := map[string]tpc.Area{"public": tpc.Public, "private": tpc.Network, "local": tpc.Loopback}[text]
		if conf.JobArea = area; !known {
			return errors.New("use public, private or local")
		}
		return nil
	})
}

// check adds the keys of the file and checks what belongs together.
func (f *coordinatorFlags) check() error {
	conf := &f.conf
	f.extra.Fill(conf, &f.file)
	if (conf.Cert == "") != (conf.Key == "") {
		return flagfile.About(cmp.Or(flagfile.Given("cert", conf.Cert), "key"), errors.New("--cert and --key must be given together"))
	}
	if conf.Plain && conf.Cert != "" {
		return flagfile.About("plain", errors.New("--plain and --cert: choose one"))
	}
	if conf.URL != "" {
		if u, err := url.Parse(conf.URL); err != nil || u.Host == "" || u.Scheme != "https" && !conf.Plain {
			return flagfile.About("url", fmt.Errorf("--url %s: write it as https://HOST:PORT", line(conf.URL)))
		}
	}
	if (conf.VOMSDir != "" || len(conf.VOMSRoles) > 0) && (conf.CA == "" || conf.VOMSDir == "") {
		return flagfile.About("vomsdir", errors.New("VOMS attributes need --vomsdir and --client-ca"))
	}
	if f.streamed < 0 {
		return flagfile.About("streamed-copies", fmt.Errorf("--streamed-copies %d: use 0 or more", f.streamed))
	}
	if conf.Streamed = f.streamed; f.streamed == 0 {
		conf.Streamed = -1
	}
	if r := conf.Rules; r.Min < 0 || r.Max < 0 || r.Max > 0 && r.Min > r.Max {
		return flagfile.About("link-max", errors.New("--link-min and --link-max: use 1 or more, and the larger one for --link-max"))
	}
	return nil
}

// addName reads a value of --name.
func (f *coordinatorFlags) addName(text string) error {
	name, roles := cutLast(text)
	if name == "" || roles == "" {
		return errors.New("use NAME=ROLE,ROLE, as in alice@example.org=weir.submit,weir.approve")
	}
	f.conf.Names[name] = strings.Split(roles, ",")
	return nil
}

// addVOMSRole reads a value of --voms-role.
func (f *coordinatorFlags) addVOMSRole(text string) error {
	fqan, roles := cutLast(text)
	if !strings.HasPrefix(fqan, "/") || roles == "" {
		return errors.New("use FQAN=ROLE,ROLE, as in /atlas/Role=production=weir.submit")
	}
	f.conf.VOMSRoles[fqan] = strings.Split(roles, ",")
	return nil
}

// addIssuer reads a value of --user-issuer.
func (f *coordinatorFlags) addIssuer(address string) error {
	i := coordinator.Issuer{URL: address}
	f.conf.Issuers = append(f.conf.Issuers, i)
	return i.Check()
}

// addShare reads a value of --share.
func (f *coordinatorFlags) addShare(text string) error {
	name, weight := cutLast(text)
	w, err := strconv.ParseFloat(weight, 64)
	if err != nil || !(w > 0 && w <= 1e6) {
		return errors.New("use NAME=WEIGHT with a weight above 0, as in production=3")
	}
	f.conf.Shares[name] = w
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
	note := ""
	if err == nil {
		note, err = conf.Claim(ctx, path)
	}
	if err != nil {
		note = "commands on this machine do not find the coordinator by themselves: " + err.Error()
	}
	if note != "" {
		s.printErr("weir: %s\n", note)
	}
}

func moveDBCommand(s streams) *cobra.Command {
	var state string
	var from, to dbFlags
	c := command("move-db --to ADDRESS", cobra.NoArgs, func(c *cobra.Command, _ []string) error {
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
	})
	fs := c.Flags()
	fs.StringVar(&state, "state", "", "`DIR` of the coordinator's state (default ~/.local/state/weir/coordinator)")
	from.add(fs, "from", "", "copy this database: a `FILE`, or postgres://USER@HOST/NAME (default: the file in the state folder)")
	to.add(fs, "to", "", "into this empty one: a `FILE`, or postgres://USER@HOST/NAME, with the password in ~/.pgpass or PGPASSWORD")
	quietFlag(c, &s.quiet)
	return c
}
