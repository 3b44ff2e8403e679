package lab

import (
	"errors"
	"slices"
	"strings"
)

// A Kind is a system that this package can start.
type Kind struct {
	Name    string
	What    string   // one line
	Auths   []string // ways in which clients can be asked who they are
	Several string   // one line on what it is of several servers; "" if it is never
	Slots   bool     // it runs jobs, and is told how many at once
	TLS     bool     // it can speak TLS
}

// Kinds returns all of them.
func Kinds() []Kind {
	none := []string{"none"}
	return []Kind{
		{Name: "gridftp", What: "GridFTP server that lets everyone in", Auths: none, Several: "behind HAProxy, each with its own data address"},
		{Name: "htcondor", What: "personal pool of HTCondor with hundreds of slots", Auths: none, Slots: true},
		{Name: "nginx", What: "nginx as an HTTP and WebDAV server", Auths: none, TLS: true},
		{Name: "postgresql", What: "PostgreSQL server with an empty database", Auths: none},
		{Name: "slurm", What: "Slurm of one machine with hundreds of processors", Auths: none, Slots: true},
		{Name: "ssh", What: "machine to log in to", Auths: none, Several: "node1, node2... with a home each"},
		{Name: "xrootd", What: "XRootD server, or a redirector with data servers", Auths: XRootDAuths(), Several: "behind a redirector", TLS: true},
	}
}

// Missing returns what is not on this machine and what would bring it, in
// order that k with that authentication and so many servers can be started.
func (k Kind) Missing(auth string, servers int) []*MissingError {
	return missing(Config{}, k.needs(auth, servers))
}

func (k Kind) needs(auth string, servers int) []string {
	switch k.Name {
	case "gridftp":
		return GridFTPConfig{Servers: servers}.needs()
	case "htcondor":
		return condorPrograms()
	case "postgresql":
		return postgresPrograms()
	case "slurm":
		return slurmPrograms()
	case "ssh":
		return sshPrograms()
	case "xrootd":
		return XRootDConfig{Auth: auth, Servers: servers}.needs()
	default:
		return []string{k.Name}
	}
}

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
