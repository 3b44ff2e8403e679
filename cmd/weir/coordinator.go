package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/db"
	"weir/internal/durable"
	"weir/internal/flagfile"
	"weir/internal/screen"
	"weir/internal/tpc"
	"weir/internal/trust"
	"weir/internal/unit"
	"weir/monitor"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/client"
	"weir/transfer/coordinator"
	"weir/transfer/messages"
	"weir/transfer/settings"
	"weir/transfer/state"
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

// shortestKeep is the shortest time for which ended requests are kept, since the temporary files of
// failed requests are resumed for a day.
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
	conf := &f.conf
	conf.Names, conf.VOMSRoles, conf.Shares = map[string][]string{}, map[string][]string{}, map[string]float64{}
	conf.JobArea, conf.Listen, conf.VO, f.streamed = tpc.Public, "127.0.0.1:9443", "weir", 64
	conf.KeepEndpoints = 7 * 24 * time.Hour
	f.file.Add(c.Flags(), &f.extra, "broker", "name", "share", "user-issuer", "voms-role")
	f.db.add(c, "db", "WEIR_DB")
	flagVars{
		"state": &conf.State, "standby": &conf.Standby, "listen": &conf.Listen, "url": &conf.URL, "cert": &conf.Cert, "key": &conf.Key,
		"plain": &conf.Plain, "client-ca": &conf.CA, "site-ca": &conf.SiteCA, "vomsdir": &conf.VOMSDir,
		"user-issuer": each(f.addIssuer), "broker": each(f.addBroker), "share": each(f.addShare), "link-min": &conf.Rules.Min,
		"link-max": &conf.Rules.Max, "lease": parseTime(&conf.Lease, 2*time.Second), "patience": parseTime(&conf.Patience, 1),
		"keep": parseTime(&conf.Keep, shortestKeep), "fts-vo": &conf.VO, "streamed-copies": &f.streamed,
		"user-files": &conf.UserQuota.Files, "user-submissions": &conf.UserQuota.Submissions, "vo-files": &conf.VOQuota.Files,
		"vo-submissions": &conf.VOQuota.Submissions, "while-stdin": &f.stdin,
		"name":      rolesInto(conf.Names, "", "NAME=ROLE,ROLE, as in alice@example.org=submit,approve"),
		"voms-role": rolesInto(conf.VOMSRoles, "/", "FQAN=ROLE,ROLE, as in /atlas/Role=production=submit"),
		"approve-up-to": into(&conf.Approve, func(text string) (unit.Size, error) {
			if text == "all" {
				return -1, nil
			}
			size, err := unit.ParseSize(text)
			if err != nil {
				err = fmt.Errorf("%w (or all)", err)
			}
			return size, err
		}),
		"probe": into(&conf.Rules.Probe, func(text string) (unit.Fraction, error) {
			share, err := unit.ParseFraction(text)
			if err == nil && share <= 0 {
				err = errors.New("use a share above 0, as in 5%")
			}
			return share, err
		}),
		"keep-endpoints": parseTime(&conf.KeepEndpoints, time.Hour),
		"fts-endpoints": &parsed{"public", func(text string) error {
			area, known := map[string]tpc.Area{"known": tpc.Public, "public": tpc.Public, "private": tpc.Network, "local": tpc.Loopback}[text]
			if conf.JobArea, conf.KnownSites = area, text == "known"; !known {
				return errors.New("use known, public, private or local")
			}
			return nil
		}},
	}.add(c)
}

// check adds the keys of the file and checks the settings that depend on each other.
func (f *coordinatorFlags) check() error {
	conf := &f.conf
	f.extra.Fill(conf, &f.file)
	u, err := url.Parse(conf.URL)
	noURL := conf.URL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && !conf.Plain)
	voms, r := conf.VOMSDir != "" || len(conf.VOMSRoles) > 0, conf.Rules
	if conf.Streamed = f.streamed; f.streamed == 0 {
		conf.Streamed = -1
	}
	limit := func(flag string, value int) error {
		return flagfile.If(value < 0, flag, "--%s %d: use 0 (no limit) or more", flag, value)
	}
	return flagfile.All(
		errorOf(f.db.read()),
		limit("user-files", conf.UserQuota.Files), limit("user-submissions", conf.UserQuota.Submissions),
		limit("vo-files", conf.VOQuota.Files), limit("vo-submissions", conf.VOQuota.Submissions),
		flagfile.Listen("listen", conf.Listen),
		flagfile.If(conf.Plain && coordinator.CheckLoopback(conf.Listen) != nil, "listen plain",
			"--listen %s: with --plain the address must be on loopback, such as 127.0.0.1:9443", line(conf.Listen)),
		flagfile.Pair("cert", conf.Cert, "key", conf.Key),
		flagfile.If(conf.Plain && conf.Cert != "", "plain cert", "--plain and --cert: choose one"),
		flagfile.If(noURL, "url plain", "--url %s: write it as https://HOST:PORT", line(conf.URL)),
		flagfile.If(voms && (conf.CA == "" || conf.VOMSDir == ""), "vomsdir client-ca", "VOMS attributes need --vomsdir and --client-ca"),
		flagfile.Wrap("client-ca", access.CheckAuthorities(conf.CA)),
		flagfile.Wrap("site-ca", errorOf(trust.WithSystem(conf.SiteCA))),
		flagfile.Readable("vomsdir", conf.VOMSDir),
		flagfile.If(f.streamed < 0, "streamed-copies", "--streamed-copies %d: use 0 or more", f.streamed),
		flagfile.If(r.Min < 0 || r.Max < 0 || r.Max > 0 && r.Min > r.Max, "link-max link-min",
			"--link-min and --link-max: use 1 or more, and the larger one for --link-max"))
}

// rolesInto reads values NAME=ROLE,ROLE with names that begin with prefix.
func rolesInto(to map[string][]string, prefix, example string) each {
	return func(text string) error {
		name, roles := cutLast(text)
		if name == "" || !strings.HasPrefix(name, prefix) || roles == "" {
			return errors.New("use " + example)
		}
		for role := range strings.SplitSeq(roles, ",") {
			if err := access.CheckRole(transfer.RoleOf(role)); err != nil {
				return err
			}
			to[name] = append(to[name], transfer.RoleOf(role))
		}
		return nil
	}
}

// addIssuer reads a value of --user-issuer.
func (f *coordinatorFlags) addIssuer(address string) error {
	i := access.Issuer{URL: address}
	f.conf.Issuers = append(f.conf.Issuers, i)
	return i.Check()
}

// addBroker reads a value of --broker.
func (f *coordinatorFlags) addBroker(address string) error {
	if f.conf.Broker == nil {
		f.conf.Broker = &messages.Broker{}
	}
	f.conf.Broker.URLs = append(f.conf.Broker.URLs, address)
	return f.conf.Broker.Check()
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

// cutLast cuts at the last =, because subjects of certificates contain further = signs.
func cutLast(text string) (name, value string) {
	i := max(strings.LastIndexByte(text, '='), 0)
	return text[:i], strings.TrimPrefix(text[i:], "=")
}

// stateFolder returns dir, or the folder of this user's coordinator.
func stateFolder(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	return durable.StateDir("coordinator")
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
		return serviceEnd(ctx, listening("coordinator", err))
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	admin, err := c.Admin()
	if err != nil {
		return err
	}
	local := client.Config{URLs: []string{c.URL()}, Pin: c.Pin(), Token: admin}
	if u, err := url.Parse(c.URL()); conf.Cert != "" && err == nil && trust.Vouched(conf.Cert, u.Hostname()) != nil {
		if local.CAFile, err = filepath.Abs(conf.Cert); err != nil { // commands on this machine trust the certificate itself
			return err
		}
	}
	if note := local.Claim(ctx); note != "" {
		s.printErr("weir: %s\n", note)
	}
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

func moveDBCommand(s streams) *cobra.Command {
	var keys string
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
		folder, err := stateFolder(keys)
		if err != nil {
			return err
		}
		ctx, cancel := s.untilSignal(c.Context(), false)
		defer cancel()
		all, err := state.MoveDB(ctx, folder, source, target, func(table string) { s.say("%s\n", table) })
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
	flagVars{"state": &keys, "quiet/q": &s.quiet}.add(c)
	from.add(c, "from", "")
	to.add(c, "to", "")
	return c
}
