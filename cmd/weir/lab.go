package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/lab"
)

func labCommand(s streams, signals signalSource) *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Start real storage services and batch systems on this machine, to try things on",
		Long: `Real servers, started on this machine's loopback interface under a plain user,
with an authority, a KDC or tokens of their own where that is asked for, and
gone without a trace when the command ends; and what runs workers of weir: a pool
of HTCondor, a Slurm, machines to log in to with ssh.`,
		Example: "  weir lab up xrootd --servers 3\n  weir lab up htcondor\n  weir lab list",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(labUpCommand(s, signals), labListCommand(s))
	return c
}

// labFlags are the options of the system to start.
type labFlags struct {
	lab.Options
	tls  bool
	dir  string
	json bool
}

func labUpCommand(s streams, signals signalSource) *cobra.Command {
	var f labFlags
	c := &cobra.Command{
		Use:   "up {" + strings.Join(labKinds(), "|") + "} [-- COMMAND [ARG...]]",
		Short: "Start a service or batch system and keep it until interrupted",
		Long: `Starts a service, prints its URLs, the environment that real clients need and
what a scenario says of it, and keeps it until it is interrupted. Of a batch system
(htcondor, slurm) or machines to log in to (ssh) the environment is that in which
its own programs, and weir run --on, find it.

With -- COMMAND it runs that command instead of waiting, in the environment that
real clients need, then stops the service and exits as the command did. The
command finds there, too:
  WEIR_LAB_URL        what clients are pointed at
  WEIR_LAB_URL_HTTP   (or another scheme) the same folder by another protocol
  WEIR_LAB_AUTH       the auth block of a scenario, as in --set auth="$WEIR_LAB_AUTH"
  WEIR_LAB_CA         the file of the certificate authority, where there is one
  WEIR_LAB_DATA       the folder behind the URL (of the first data server)
  WEIR_LAB_BALANCER   the balancer block of a scenario, where HAProxy spreads the load
  WEIR_LAB_HOSTS      the hosts block of a scenario: the servers behind it
  WEIR_LAB_ON         the on block of a scenario, of what runs jobs`,
		Example: `  weir lab up xrootd --servers 3 --auth krb5
  weir lab up xrootd --version 6
  weir lab up nginx --tls --json
  weir lab up gridftp --servers 6
  weir lab up htcondor --slots 500 -- condor_status
  weir lab up xrootd --auth gsi -- sh -c 'xrdcp /etc/hostname "$WEIR_LAB_URL/f"'`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return labKinds(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			kind, command, err := f.split(c, args)
			if err != nil {
				return usageError(c, err)
			}
			return f.up(c.Context(), kind, command, s, signals)
		},
	}
	fs := c.Flags()
	fs.IntVar(&f.Servers, "servers", 0, "`N` data servers behind a redirector (xrootd) or HAProxy (gridftp), or machines (ssh); 0: one alone")
	fs.IntVar(&f.Slots, "slots", 0, "`N` jobs that run at once; 0: 200 (htcondor), 256 (slurm)")
	fs.DurationVar(&f.Lookup, "lookup", time.Second, "how long the redirector makes clients wait for each new file, as in `5s` (xrootd)")
	fs.StringVar(&f.Auth, "auth", "none", "`HOW` clients prove who they are: "+strings.Join(lab.XRootDAuths(), ", ")+" (xrootd)")
	fs.StringVar(&f.Version, "version", "", "`V` of the server, as in 5.8 or 6; left out: this system's (xrootd)")
	fs.BoolVar(&f.tls, "tls", false, "speak TLS, too (nginx, xrootd)")
	fs.StringVar(&f.dir, "dir", "", "an empty or missing folder `DIR` for all that the service has on disk; emptied at the end")
	quietFlag(c, &s.quiet)
	fs.BoolVar(&f.json, "json", false, "print what there is as JSON")
	_ = c.RegisterFlagCompletionFunc("version", cobra.FixedCompletions(lab.XRootDVersions(), cobra.ShellCompDirectiveNoFileComp)) // as below
	_ = c.RegisterFlagCompletionFunc("auth", cobra.FixedCompletions(lab.XRootDAuths(), cobra.ShellCompDirectiveNoFileComp))       // the flag is there
	return c
}

func labKinds() []string {
	var names []string
	for _, k := range lab.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// split separates the kind of system from the command after --, and checks both.
func (f *labFlags) split(c *cobra.Command, args []string) (kind lab.Kind, command []string, err error) {
	if n := c.ArgsLenAtDash(); n >= 0 {
		args, command = args[:n], args[n:]
		if len(command) == 0 {
			return kind, nil, errors.New("no command after --")
		}
		if f.json {
			return kind, nil, errors.New("--json has nowhere to go when a command runs: leave it out")
		}
	}
	if len(args) != 1 {
		return kind, nil, fmt.Errorf("name one service: %s (and a command of yours after --)", strings.Join(labKinds(), ", "))
	}
	for _, k := range lab.Kinds() {
		if k.Name == args[0] {
			return k, command, f.fits(c, k)
		}
	}
	return kind, nil, fmt.Errorf("no service %q here: use one of %s", args[0], strings.Join(labKinds(), ", "))
}

// fits returns an error if k does not have what the flags ask for.
func (f *labFlags) fits(c *cobra.Command, k lab.Kind) error {
	for _, flag := range []struct {
		name string
		of   func(lab.Kind) bool
	}{
		{"servers", func(k lab.Kind) bool { return k.Several != "" }},
		{"slots", func(k lab.Kind) bool { return k.Slots }},
		{"lookup", func(k lab.Kind) bool { return k.Name == "xrootd" }},
		{"auth", func(k lab.Kind) bool { return len(k.Auths) > 1 }},
		{"tls", func(k lab.Kind) bool { return k.TLS }},
		{"version", func(k lab.Kind) bool { return k.Version }},
	} {
		if c.Flags().Changed(flag.name) && !flag.of(k) {
			return fmt.Errorf("--%s is for %s, not for %s", flag.name, labKindsThat(flag.of), k.Name)
		}
	}
	if c.Flags().Changed("lookup") && f.Servers == 0 {
		return errors.New("--lookup is the redirector's: add --servers 3")
	}
	if f.Lookup < time.Second || f.Lookup%time.Second != 0 {
		return fmt.Errorf("--lookup %v: use whole seconds, at least 1s", f.Lookup)
	}
	if f.Servers < 0 || f.Servers > lab.MaxServers {
		return fmt.Errorf("--servers %d: use 0 (one server alone) to %d", f.Servers, lab.MaxServers)
	}
	if f.Slots < 0 || f.Slots > lab.MaxSlots {
		return fmt.Errorf("--slots %d: use 1 to %d", f.Slots, lab.MaxSlots)
	}
	if !slices.Contains(k.Auths, f.Auth) {
		return fmt.Errorf("--auth %s: use one of %s", f.Auth, strings.Join(k.Auths, ", "))
	}
	return nil
}

// labKindsThat lists the kinds that satisfy a condition, as in "gridftp and xrootd".
func labKindsThat(is func(lab.Kind) bool) string {
	var names []string
	for _, k := range lab.Kinds() {
		if is(k) {
			names = append(names, k.Name)
		}
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func labListCommand(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the services that can be started, and what is missing for them",
		Example: "  weir lab list", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return printList(s.out, asJSON, "services", lab.Offers(), printOffers)
		},
	}
	jsonFlag(c, &asJSON, "print the list as JSON")
	return c
}

func printOffers(w io.Writer, all []lab.Offer) error {
	t := newTable(w)
	for _, o := range all {
		name := o.Name
		switch {
		case o.Servers > 0:
			name = "  --servers N"
		case o.Auth != "none":
			name = "  --auth " + o.Auth
		}
		t.row(name, o.What, o.Readiness())
	}
	return t.Flush()
}
