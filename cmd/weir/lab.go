package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/internal/say"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/lab"
)

func labCommand(s streams) *cobra.Command {
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "List the services that can be started, and what is missing for them",
		Example: "  weir lab list", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return printList(s.out, asJSON, "services", lab.Offers(), printOffers)
		},
	}
	jsonFlag(list, &asJSON, "print the list as JSON")
	return group(&cobra.Command{
		Use:   "lab",
		Short: "Start real storage services and batch systems for tests",
		Long: `Start real storage services and batch systems for tests.

The services run on this machine's loopback interface as a plain user, with a certificate
authority, a KDC or tokens of their own if requested, and are removed without a trace when the
command ends. The batch systems run workers of weir: an HTCondor pool, a Slurm, or machines
for ssh.`,
		Example: "  weir lab up xrootd --servers 3\n  weir lab up htcondor\n  weir lab list",
	}, labUpCommand(s), list)
}

// labFlags are the options of the system to start.
type labFlags struct {
	lab.Options
	tls                     bool
	dir                     string
	diskLimit, size, memory string
	disk                    lab.Disk
	json                    bool
}

func labUpCommand(s streams) *cobra.Command {
	var f labFlags
	c := &cobra.Command{
		Use:   "up {" + strings.Join(labKinds(), "|") + "} [-- COMMAND [ARG...]]",
		Short: "Start a service or batch system and keep it until interrupted",
		Long: `Start a service or batch system and keep it until interrupted.

It prints the URLs, the environment that real clients need, and the blocks for a scenario. Of
a batch system (htcondor, slurm) or machines for ssh, the environment is that in which their
own programs, and weir run --on, find it.

With -- COMMAND it runs that command in this environment instead of waiting, then stops the
service and exits as the command did. The command also gets:
  WEIR_LAB_URL        the URL for clients
  WEIR_LAB_URL_HTTP   (or another scheme) the same folder by another protocol
  WEIR_LAB_AUTH       the auth block of a scenario, as in --set auth="$WEIR_LAB_AUTH"
  WEIR_LAB_SERVERS    the data servers behind a redirector, as a target whose clients use them in turn
  WEIR_LAB_CA         the file of the certificate authority, if there is one
  WEIR_LAB_DATA       the folder behind the URL (of the first data server)
  WEIR_LAB_BALANCER   the balancer block of a scenario, with HAProxy
  WEIR_LAB_HOSTS      the hosts block of a scenario: the servers behind it
  WEIR_LAB_ON         the on block of a scenario, of a system that runs jobs`,
		Example: `  weir lab up xrootd --servers 3 --auth krb5
  weir lab up xrootd --version 6
  weir lab up xrootd --set xrootd.async=off --set xrd.sched="mint 8 maxt 1024 avlt 128 idle 256"
  weir lab up nginx --tls --json
  weir lab up gridftp --servers 6
  weir lab up xrootd --servers 2 --disk-limit 40MB/s --memory-limit 512MB
  weir lab up htcondor --slots 500 -- condor_status
  weir lab up xrootd --auth gsi -- sh -c 'xrdcp /etc/hostname "$WEIR_LAB_URL/f"'`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return labKinds(), noFiles
		},
		RunE: func(c *cobra.Command, args []string) error {
			kind, command, err := f.split(c, args)
			if err != nil {
				return usageError(c, err)
			}
			return f.up(c.Context(), kind, command, s)
		},
	}
	fs := c.Flags()
	fs.IntVar(&f.Servers, "servers", 0, "`N` data servers behind a redirector (xrootd) or HAProxy (gridftp), "+
		"or machines (ssh); 0: a single one")
	fs.IntVar(&f.Slots, "slots", 0, "`N` jobs that run at once; 0: 200 (htcondor), 256 (slurm)")
	fs.DurationVar(&f.Lookup, "lookup", time.Second, "how long the redirector makes clients wait for each new file, as in `5s` (xrootd)")
	fs.StringVar(&f.Auth, "auth", "none", "authentication `METHOD`: "+strings.Join(lab.XRootDAuths(), ", ")+
		" (xrootd); gridftp has none and gsi")
	fs.StringVar(&f.Version, "version", "", "`VERSION` of the server, as in 5.8 or 6 (xrootd; default: this system's)")
	fs.StringArrayVar(&f.Set, "set", nil, "`DIRECTIVE=VALUE` of the servers' configuration, as in xrd.sched=\"mint 8 maxt 1024\"; "+
		"can be repeated (xrootd)")
	fs.BoolVar(&f.tls, "tls", false, "also use TLS (nginx, xrootd)")
	f.diskFlags(fs)
	fs.StringVar(&f.dir, "dir", "", "use this empty or missing `DIR` for all files of the service; it is emptied at the end")
	quietFlag(c, &s.quiet)
	jsonFlag(c, &f.json, "print the description of the service as JSON")
	return c
}

func labKinds() (names []string) {
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
			return kind, nil, errors.New("--json cannot be combined with a command: leave it out")
		}
	}
	if len(args) != 1 {
		return kind, nil, fmt.Errorf("name one service: %s (and a command of yours after --)", strings.Join(labKinds(), ", "))
	}
	if k, ok := lab.KindOf(args[0]); ok {
		return k, command, f.check(c, k)
	}
	return kind, nil, fmt.Errorf("there is no service %q: use one of %s", args[0], strings.Join(labKinds(), ", "))
}

// check returns an error if k does not have what the flags ask for.
func (f *labFlags) check(c *cobra.Command, k lab.Kind) error {
	for _, flag := range []struct {
		name string
		has  func(lab.Kind) bool
	}{
		{"servers", func(k lab.Kind) bool { return k.Several != "" }},
		{"slots", func(k lab.Kind) bool { return k.Slots }},
		{"lookup", func(k lab.Kind) bool { return k.Name == "xrootd" }},
		{"auth", func(k lab.Kind) bool { return len(k.Auths) > 1 }},
		{"tls", func(k lab.Kind) bool { return k.TLS }},
		{"disk-limit", func(k lab.Kind) bool { return k.Disk }},
		{"disk-size", func(k lab.Kind) bool { return k.Disk }},
		{"memory-limit", func(k lab.Kind) bool { return k.Disk }},
		{"version", func(k lab.Kind) bool { return k.Version }},
		{"set", func(k lab.Kind) bool { return k.Name == "xrootd" }},
	} {
		if !c.Flags().Changed(flag.name) || flag.has(k) {
			continue
		}
		var names []string
		for _, other := range lab.Kinds() {
			if flag.has(other) {
				names = append(names, other.Name)
			}
		}
		text := strings.Join(names, ", ")
		if i := strings.LastIndex(text, ", "); i >= 0 {
			text = text[:i] + " and " + text[i+2:]
		}
		return fmt.Errorf("--%s is for %s, not for %s", flag.name, text, k.Name)
	}
	switch {
	case c.Flags().Changed("lookup") && f.Servers == 0:
		return errors.New("--lookup is for a redirector: add --servers 3")
	case f.Lookup < time.Second || f.Lookup%time.Second != 0:
		return fmt.Errorf("--lookup %v: use whole seconds, at least 1s", f.Lookup)
	case f.Servers < 0 || f.Servers > lab.MaxServers:
		return fmt.Errorf("--servers %d: use 0 (a single server) to %d", f.Servers, lab.MaxServers)
	case f.Slots < 0 || f.Slots > lab.MaxSlots:
		return fmt.Errorf("--slots %d: use 1 to %d", f.Slots, lab.MaxSlots)
	case !slices.Contains(k.Auths, f.Auth):
		return fmt.Errorf("--auth %s: use one of %s", f.Auth, strings.Join(k.Auths, ", "))
	}
	if err := f.CheckSet(); err != nil {
		return fmt.Errorf("--set: %w", err)
	}
	return f.readDisk(c)
}

func (f *labFlags) diskFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.diskLimit, "disk-limit", "", "give each data server (nginx, xrootd), or each node for scratch (ssh), "+
		"a disk of its own that reads and writes this `RATE` at most, as in 40MB/s (as root)")
	fs.StringVar(&f.size, "disk-size", "10GB", "`SIZE` of such a disk; it takes space as files are written")
	fs.StringVar(&f.memory, "memory-limit", "", "`SIZE` of the memory of each such server with its page cache, as in 1GB: "+
		"what does not fit is read from the disk")
}

// readDisk reads the limits of the disks.
func (f *labFlags) readDisk(c *cobra.Command) error {
	if f.diskLimit == "" {
		if c.Flags().Changed("disk-size") || c.Flags().Changed("memory-limit") {
			return errors.New("--disk-size and --memory-limit need --disk-limit: add it, as in --disk-limit 40MB/s")
		}
		return nil
	}
	for _, size := range []struct {
		flag, text string
		to         *int64
	}{
		{"disk-limit", strings.TrimSuffix(f.diskLimit, "/s"), &f.disk.Rate},
		{"disk-size", f.size, &f.disk.Size},
		{"memory-limit", f.memory, &f.disk.Memory},
	} {
		if size.text == "" {
			continue
		}
		n, err := unit.ParseSize(size.text)
		if err != nil {
			return fmt.Errorf("--%s: %w", size.flag, err)
		}
		*size.to = int64(n)
	}
	return f.disk.Check()
}

func printOffers(w io.Writer, all []lab.Offer) error {
	t := say.NewTable(w)
	for _, o := range all {
		name := o.Name
		switch {
		case o.Servers > 0:
			name = "  --servers N"
		case o.Auth != "none":
			name = "  --auth " + o.Auth
		}
		t.Row(name, o.What, o.Readiness())
	}
	return t.Flush()
}

// up starts the system and keeps it until a signal comes, or until command has ended, if
// there is one.
func (f *labFlags) up(ctx context.Context, k lab.Kind, command []string, s streams) error {
	caught, release := withHangup(s.signals.listen())
	defer release()
	system, err := f.start(ctx, caught, k, s)
	if err != nil {
		return err
	}
	switch {
	case len(command) > 0:
		if system.Note != "" {
			s.say("weir: %s\n", system.Note)
		}
		return errors.Join(runInside(ctx, system, command, s, caught), system.Stop())
	case f.json:
		err = writeJSON(s.out, system.State())
	default:
		err = printSystem(s.out, system)
	}
	if err == nil {
		s.say("weir: interrupt (Ctrl-C) to stop it\n")
		select {
		case <-caught:
		case <-ctx.Done():
		}
		s.say("weir: stopping\n")
	}
	return errors.Join(err, system.Stop())
}

// start starts the system unless a signal comes before it is up, and shows the progress.
func (f *labFlags) start(ctx context.Context, caught <-chan os.Signal, k lab.Kind, s streams) (*lab.System, error) {
	if err := k.Installed(f.Options); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	started, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case by := <-caught:
			cancel(exit{interruption{by}.code(), errors.New("interrupted before it was up")})
		case <-started:
		}
	}()
	begin := time.Now()
	s.say("weir: starting %s\n", k.Name)
	spinner := s.working("starting " + k.Name)
	c := lab.Config{Dir: f.dir, TLS: f.tls, Disk: f.disk, Progress: func(part string) { s.say("weir: %s is up\n", part) }}
	system, err := k.Start(ctx, c, f.Options)
	spinner.Stop()
	close(started)
	<-watched
	switch cause := context.Cause(ctx); {
	case cause != nil && err == nil:
		return nil, errors.Join(cause, system.Stop())
	case cause != nil:
		return nil, cause
	case err == nil:
		s.say("weir: ready after %.1f s\n", time.Since(begin).Seconds())
	}
	return system, err
}

// runInside runs a command in the environment of the system. Signals of a terminal reach it
// by themselves, others are forwarded; a second one kills it.
func runInside(ctx context.Context, system *lab.System, argv []string, s streams, caught <-chan os.Signal) error {
	cmd := exec.CommandContext(ctx, programOf(system, argv[0]), argv[1:]...)
	cmd.Env = append(os.Environ(), system.Variables()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.in, screen.Under(s.out), screen.Under(s.err) // it has the terminal
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for n := 1; ; n++ {
		select {
		case sig := <-caught:
			switch {
			case n > 1:
				_ = cmd.Process.Kill()
			case sig != os.Interrupt || !screen.IsTerminalReader(s.in):
				_ = cmd.Process.Signal(sig)
			}
		case err := <-done:
			return exitOf(err)
		}
	}
}

// exitOf returns the exit of a command: its code, or 128 and the signal that ended it.
func exitOf(err error) error {
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return err
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exit{code: 128 + exitCode(status.Signal())}
	}
	return exit{code: exitCode(ended.ExitCode())}
}

// programOf finds a program in the PATH of the system's clients.
func programOf(system *lab.System, name string) string {
	for _, v := range system.Env {
		path, ok := strings.CutPrefix(v, "PATH=")
		if !ok || strings.Contains(name, "/") {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil && dir != "" {
				return found
			}
		}
	}
	return name
}

// printSystem prints what a user needs to use the system.
func printSystem(out io.Writer, s *lab.System) error {
	var b strings.Builder
	t := say.NewTable(&b)
	for _, scheme := range slices.Sorted(maps.Keys(s.URLs)) {
		t.Row(scheme, s.URLs[scheme])
	}
	if s.Data != "" {
		t.Row("data", s.Data)
	}
	if s.Slots > 0 {
		t.Row("slots", s.Slots)
	}
	if s.CAFile != "" {
		t.Row("authority", s.CAFile)
	}
	for _, server := range s.Servers {
		if len(s.Servers) == 1 && s.Batch == "" {
			break
		}
		cells := []any{server.Name, server.Address, "pids " + strings.Trim(fmt.Sprint(s.Pids(server.Name)), "[]")}
		if server.Interface != "" {
			cells = append(cells, "by "+server.Interface)
		}
		t.Row(cells...)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if s.Note != "" {
		b.WriteString("\n# " + s.Note + "\n")
	}
	if len(s.Env) > 0 {
		b.WriteString("\n# environment of real clients\nexport " + strings.Join(s.Env, "\nexport ") + "\n")
	}
	if s.Name != "postgresql" { // which is not measured
		b.WriteString("\n# for a scenario\n" + s.Scenario())
	}
	_, err := io.WriteString(out, b.String())
	return err
}
