package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Roles of a Server.
const (
	Redirector = "redirector"
	DataServer = "data server"
	Balancer   = "balancer"
)

// A Server is one member of a System: the processes that a separate host would run.
type Server struct {
	Name    string `json:"name"`           // "redirector", "ds1", "ds2"...; "xrootd" for a single server
	Role    string `json:"role"`           // Redirector, DataServer, Balancer or Node
	Address string `json:"address"`        // host:port; redirects may have a name as the host
	URL     string `json:"url"`            // of this server alone
	Data    string `json:"data,omitempty"` // its folder behind /data, or behind URL; may be empty

	// Of a GridFTP server behind a balancer.
	DataAddress string `json:"data_address,omitempty"` // of its data connections, without a port
	Interface   string `json:"interface,omitempty"`    // of this machine, which carries its data only; "": the loopback interface
	TransferLog string `json:"transfer_log,omitempty"` // file with a line for each transfer
}

// cluster makes a redirector and its data servers. Their order makes them ready in three seconds: a
// data server that finds no manager, and an xrootd that finds no cmsd, tries again after ten.
func (c XRootDConfig) cluster(s *System, v xrootdValues, programs map[string][]string) {
	front, manager := s.newPort(true), s.newPort(true)
	c.point(s, front)
	s.Servers = []Server{{Name: Redirector, Role: Redirector, Address: front.Address(), URL: s.URL}}
	v.Manager = manager.Address()
	head := v
	head.Role, head.Lookup = "manager", c.Lookup
	xrootdMember(s, Redirector, head, front, manager.String(), programs)
	s.lastDisk(fmt.Sprintf("ds%d", c.Servers))
	for i := range c.Servers {
		p := s.newPort(true)
		name := fmt.Sprintf("ds%d", i+1)
		server := newDataServer(s, name, p, name)
		s.Servers = append(s.Servers, server)
		v := v
		v.Root = filepath.Dir(server.Data)
		v.Extra = v.Authorization + v.Extra
		xrootdMember(s, name, v, p, "any", programs)
	}
	s.Data = s.Servers[1].Data
	s.settled = func(ctx context.Context) error { return redirectorKnowsAll(ctx, s) }
}

// xrootdMember adds the cmsd and the xrootd of one server.
func xrootdMember(s *System, name string, v xrootdValues, p *port, cms string, programs map[string][]string) {
	socket := filepath.Join(s.Dir, "admin", name, ".olb", "olbd.admin")
	listen := []string{socket}
	if v.Role == "manager" {
		socket = filepath.Join(filepath.Dir(socket), "olbd.nimda")
		listen = []string{socket, v.Manager}
	}
	if len(socket) > 107 {
		s.fail(fmt.Errorf("lab: %s: folder %s is too long a name for the servers' sockets: give a shorter one", s.Name, s.Dir))
	}
	c := v
	c.Program, c.Port, c.Extra = "cmsd", cms, linesOf(v.Extra, "cms.")
	manager := xrootdPart(s, name, c, programs, askListener(listen...))
	manager.stale = socket
	v.Port = p.String()
	server := xrootdPart(s, name, v, programs, askXRootD(p.Address()))
	if name != Redirector {
		s.confine(name, manager, server)
	}
}

// linesOf returns the lines of text that begin with a prefix.
func linesOf(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), prefix) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// redirectorKnowsAll returns nil if the redirector lists all running data servers.
func redirectorKnowsAll(ctx context.Context, s *System) error {
	if len(s.Pids(Redirector)) < 2 {
		return nil // it has been killed: there is no redirector to manage them
	}
	known, err := locate(ctx, s.Servers[0].Address)
	if err != nil {
		return err
	}
	var errs []error
	for _, server := range s.Servers[1:] {
		_, port, _ := strings.Cut(server.Address, ":")
		if !known[port] && len(s.Pids(server.Name)) == 2 {
			errs = append(errs, fmt.Errorf("the redirector does not list %s yet", server.Name))
		}
	}
	return errors.Join(errs...)
}

// Server returns the member of that name, or an error that lists the members.
func (s *System) Server(name string) (Server, error) {
	for _, server := range s.Servers {
		if server.Name == name {
			return server, nil
		}
	}
	return Server{}, fmt.Errorf("lab: %s has no server %q, but %s", s.Name, name, strings.Join(s.names(), ", "))
}

func (s *System) names() []string {
	var names []string
	for _, server := range s.Servers {
		names = append(names, server.Name)
	}
	return names
}

// processes returns the parts that belong to the servers of these names or roles, or all parts
// without arguments.
func (s *System) processes(of ...string) []*process {
	if len(of) == 0 {
		return s.parts
	}
	var found []*process
	for _, p := range s.parts {
		if slices.Contains(of, p.server) || slices.Contains(of, roleOf(s, p.server)) {
			found = append(found, p)
		}
	}
	return found
}

func roleOf(s *System, name string) string {
	server, _ := s.Server(name)
	return server.Role
}

// KillPart ends all processes of one server at once, as the crash of its host does, and returns
// when they have ended. Its ports stay reserved: connections are refused until RestartPart. During
// that time XRootD's redirector makes clients wait that request an unknown file, such as a new
// file: a dead data server might have it. (Extra with "cms.delay drop 3s" makes it forget the dead
// after 3 s instead of 10 minutes.)
func (s *System) KillPart(name string) error {
	_, err := s.Server(name)
	if err == nil {
		stopAll(s.processes(name), 0)
	}
	return err
}

// RestartPart starts one server again with the same address and data, after ending its running
// processes, and returns when the whole system is ready again: at once for a data server, after up
// to ten seconds for a redirector, since data servers search for a lost redirector only every ten
// seconds.
func (s *System) RestartPart(ctx context.Context, name string) error {
	if err := s.KillPart(name); err != nil {
		return err
	}
	return s.run(ctx, s.processes(name))
}

// SignalPart sends sig to all processes of one server, as Signal does to all. It does not wait: a stopped server may
// answer once more.
func (s *System) SignalPart(name string, sig syscall.Signal) error {
	if _, err := s.Server(name); err != nil {
		return err
	}
	return signalAll(s.processes(name), sig)
}
