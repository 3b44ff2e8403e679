package lab

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// A Kind is a system that this package can start.
type Kind struct {
	Name    string
	What    string   // one line
	Auths   []string // ways in which clients can be asked who they are
	Several string   // one line on what it is of several servers; "" if it is never
	Slots   bool     // it runs jobs, and is told how many at once
	Version bool     // there is more than one version of it
	TLS     bool     // it can speak TLS

	needs func(o Options) []string // programs
	start func(ctx context.Context, c Config, o Options) (*System, error)
}

// Kinds returns all of them.
func Kinds() []Kind {
	none := []string{"none"}
	return []Kind{
		{
			Name: "gridftp", What: "GridFTP server that lets everyone in", Auths: none, Several: "behind HAProxy, each with its own data address",
			needs: func(o Options) []string { return GridFTPConfig{Servers: o.Servers}.needs() },
			start: func(ctx context.Context, c Config, o Options) (*System, error) {
				return GridFTP(ctx, GridFTPConfig{Config: c, Servers: o.Servers})
			},
		}, {
			Name: "htcondor", What: "personal pool of HTCondor with hundreds of slots", Auths: none, Slots: true,
			needs: func(Options) []string { return condorPrograms() },
			start: func(ctx context.Context, c Config, o Options) (*System, error) {
				return HTCondor(ctx, HTCondorConfig{Config: c, Slots: o.Slots})
			},
		}, {
			Name: "nginx", What: "nginx as an HTTP and WebDAV server", Auths: none, TLS: true,
			needs: func(Options) []string { return []string{"nginx"} },
			start: func(ctx context.Context, c Config, _ Options) (*System, error) {
				return Nginx(ctx, NginxConfig{Config: c})
			},
		}, {
			Name: "postgresql", What: "PostgreSQL server with an empty database", Auths: none,
			needs: func(Options) []string { return postgresPrograms() },
			start: func(ctx context.Context, c Config, _ Options) (*System, error) {
				return PostgreSQL(ctx, PostgreSQLConfig{Config: c})
			},
		}, {
			Name: "slurm", What: "Slurm of one machine with hundreds of processors", Auths: none, Slots: true,
			needs: func(Options) []string { return slurmPrograms() },
			start: func(ctx context.Context, c Config, o Options) (*System, error) {
				return Slurm(ctx, SlurmConfig{Config: c, CPUs: o.Slots})
			},
		}, {
			Name: "ssh", What: "machine to log in to", Auths: none, Several: "node1, node2... with a home each",
			needs: func(Options) []string { return sshPrograms() },
			start: func(ctx context.Context, c Config, o Options) (*System, error) {
				return SSH(ctx, SSHConfig{Config: c, Nodes: o.Servers})
			},
		}, {
			Name: "xrootd", What: "XRootD server, or a redirector with data servers", Auths: XRootDAuths(), Several: "behind a redirector", TLS: true, Version: true,
			needs: func(o Options) []string { return o.xrootd(Config{}).needs() },
			start: func(ctx context.Context, c Config, o Options) (*System, error) { return XRootD(ctx, o.xrootd(c)) },
		},
	}
}

func (o Options) xrootd(c Config) XRootDConfig {
	return XRootDConfig{Config: c, Servers: o.Servers, Lookup: int(o.Lookup / time.Second), Auth: o.Auth, Version: o.Version}
}

// Start starts a system of kind k. The caller calls Stop.
func (k Kind) Start(ctx context.Context, c Config, o Options) (*System, error) {
	return k.start(ctx, c, o)
}

// Missing returns what is not on this machine and what would bring it, in order that k can be started with o.
func (k Kind) Missing(o Options) []*MissingError { return missing(Config{}, k.needs(o)) }

// missing looks programs up as c says.
func missing(c Config, programs []string) []*MissingError {
	var found []*MissingError
	for _, p := range programs {
		var m *MissingError
		if _, err := c.program(p); errors.As(err, &m) {
			found = append(found, m)
		}
	}
	return found
}

// Install says what brings what is missing: a command, several, or "" where
// none does.
func Install(list []*MissingError) string {
	var packages, commands []string
	for _, m := range list {
		if m.How != "" && !slices.Contains(commands, m.How) {
			commands = append(commands, m.How)
		}
		if m.Package != "" && !slices.Contains(packages, m.Package) {
			packages = append(packages, m.Package)
		}
	}
	if len(packages) > 0 {
		commands = append([]string{"apt-get install --no-install-recommends " + strings.Join(packages, " ")}, commands...)
	}
	return strings.Join(commands, " && ")
}
