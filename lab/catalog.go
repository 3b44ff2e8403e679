package lab

import (
	"errors"
	"slices"
)

// A Kind is a data service that this package can start.
type Kind struct {
	Name  string
	What  string   // one line
	Auths []string // ways in which clients can be asked who they are
}

// Kinds returns all of them.
func Kinds() []Kind {
	return []Kind{
		{"gridftp", "GridFTP server that lets everyone in", []string{"none"}},
		{"nginx", "nginx as an HTTP and WebDAV server", []string{"none"}},
		{"xrootd", "XRootD server, or a redirector with data servers", XRootDAuths()},
	}
}

// Missing returns what is not on this machine and what would bring it, in
// order that k with that authentication can be started.
func (k Kind) Missing(auth string) []*MissingError {
	return missing(Config{}, k.needs(auth))
}

func (k Kind) needs(auth string) []string {
	switch k.Name {
	case "gridftp":
		return []string{"globus-gridftp-server"}
	case "xrootd":
		return XRootDConfig{Auth: auth, Servers: 1}.needs()
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

// Install is the command that brings what is missing, or "" if none does.
func Install(list []*MissingError) string {
	var packages []string
	for _, m := range list {
		if m.Package != "" && !slices.Contains(packages, m.Package) {
			packages = append(packages, m.Package)
		}
	}
	if len(packages) == 0 {
		return ""
	}
	command := "apt-get install --no-install-recommends"
	for _, p := range packages {
		command += " " + p
	}
	return command
}
