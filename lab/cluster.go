package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Roles of a Server.
const (
	Redirector = "redirector"
	DataServer = "data server"
	Balancer   = "balancer"
)

// A Server is one member of a System that is made of several: the processes
// that a host of its own would have.
type Server struct {
	Name    string // "redirector", "ds1", "ds2"...; "xrootd" for one that stands alone
	Role    string // Redirector or DataServer
	Address string // host:port; as redirects name it but for the host, which may be a name there
	URL     string // clients can be pointed at it alone
	Data    string // its folder behind /data, or behind URL; "" for who has none

	// Of a GridFTP server behind a balancer.
	DataAddress string // where its data connections lead to, without a port
	Interface   string // of this machine, through which all its data goes and nothing else; "" for the loopback interface, which all share
	TransferLog string // file with a line for each transfer
}

// cluster makes a redirector and its data servers. Their order is what makes
// them ready in three seconds: a data server that finds no manager, and an
// xrootd that finds no cmsd, tries again after ten.
func (s *System) cluster(c XRootDConfig, v xrootdValues, programs map[string][]string) {
	front, manager := s.newPort(true), s.newPort(true)
	s.point(c, front)
	s.Servers = []Server{{Name: Redirector, Role: Redirector, Address: front.address(), URL: s.URL}}
	v.Manager = manager.address()
	head := v
	head.Role, head.Lookup = "manager", c.Lookup
	s.member(Redirector, head, front, manager.String(), programs)
	for i := range c.Servers {
		p := s.newPort(true)
		name := fmt.Sprintf("ds%d", i+1)
		server := s.dataServer(name, p, name)
		s.Servers = append(s.Servers, server)
		v := v
		v.Root = filepath.Dir(server.Data)
		v.Extra = v.Authorization + v.Extra
		s.member(name, v, p, "any", programs)
	}
	s.Data = s.Servers[1].Data
	s.settled = s.knowsAll
}

// member adds the cmsd and the xrootd of one server.
func (s *System) member(name string, v xrootdValues, p *port, cms string, programs map[string][]string) {
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
	s.xrd(name, c, programs, askListener(listen...)).stale = socket
	v.Port = p.String()
	s.xrd(name, v, programs, askXRootD(p.address()))
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

// knowsAll is nil when the redirector lists all data servers that run.
func (s *System) knowsAll(ctx context.Context) error {
	if len(s.Pids(Redirector)) < 2 {
		return nil // it has been killed: there is nobody to know them
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
