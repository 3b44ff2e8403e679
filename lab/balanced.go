package lab

import (
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

//go:embed haproxy.cfg
var haproxyConf string

//go:embed host.sh
var hostScript string

// balanced makes GridFTP servers gftp-1, gftp-2..., which have the same files and
// write a transfer log each, behind HAProxy: control connections come through it,
// data goes directly to each server's data address. Where root starts them, each
// server is a host with a network of its own, and all its data goes through one
// interface of this machine that carries nothing but its data and control
// connections; elsewhere all of them share the loopback interface.
func (s *System) balanced(c GridFTPConfig, program string, front *port) {
	haproxy := s.program(c.Config, "haproxy")
	s.Servers = []Server{{Name: Balancer, Role: Balancer, Address: front.address(), URL: s.URL}}
	servers := s.shared
	if !c.Loopback && canWire() {
		servers = s.wired
	} else if !c.Loopback {
		s.Note = "All servers share the loopback interface: only root can give each an interface of its own."
	}
	servers(c, program)
	s.StatsSocket = filepath.Join(s.Dir, Balancer, "stats")
	if len(s.StatsSocket) > 90 { // HAProxy adds to it while it starts
		s.fail(fmt.Errorf("lab: gridftp: folder %s is too long a name for HAProxy's socket: give a shorter one", s.Dir))
	}
	s.newDir(Balancer)
	conf := s.config("haproxy.cfg", haproxyConf, map[string]any{
		"Socket": s.StatsSocket, "Front": front.address(), "Servers": s.Servers[1:], "Connections": min(c.Connections*c.Servers+10, mostProxied()),
	})
	s.part(Balancer, askFTP(front.address()), haproxy, "-db", "-f", conf).server = Balancer
}

// mostProxied is how many connections, of two files each, HAProxy may have open.
func mostProxied() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Max > 1<<20 {
		return 100_000
	}
	return max(1, int(limit.Max)/2-50)
}

// shared makes servers whose data addresses are on the loopback interface.
func (s *System) shared(c GridFTPConfig, program string) {
	for n := range c.Servers {
		s.backend(c, Server{Name: fmt.Sprintf("gftp-%d", n+1), Address: s.newPort(false).address(), DataAddress: fmt.Sprintf("127.0.1.%d", n+1)}, program)
	}
}

// wired makes servers that are hosts of their own.
func (s *System) wired(c GridFTPConfig, program string) {
	wires, err := newWires(c.Servers)
	s.fail(err)
	for n, w := range wires {
		server := Server{Name: fmt.Sprintf("gftp-%d", n+1), Interface: w.name, DataAddress: w.their.String()}
		server.Address = net.JoinHostPort(server.DataAddress, "2811")
		dir := filepath.Join(s.Dir, server.Name)
		p := s.backend(c, server, "/bin/sh", "-c", hostScript, "host", server.Name, dir, fmt.Sprint(s.user), program)
		p.user, p.apart, p.wire, p.stale = -1, true, &w, filepath.Join(dir, "linked")
		s.openFile(server.Name+"/hosts", []byte("127.0.0.1 localhost\n"+server.DataAddress+" "+server.Name+"\n"), 0o644)
		s.openFile(server.Name+"/nsswitch.conf", []byte("passwd: files\ngroup: files\nhosts: files\n"), 0o644)
	}
}

// backend adds a server that is started by these words and the arguments of its program.
func (s *System) backend(c GridFTPConfig, server Server, argv ...string) *process {
	s.newDir(server.Name)
	server.TransferLog = s.file(filepath.Join(server.Name, "transfers"), nil)
	server.Role, server.URL, server.Data = DataServer, "ftp://"+server.Address+s.Data, s.Data
	s.Servers = append(s.Servers, server)
	argv = append(append(argv, s.gridftpArgs(c, server)...), "-log-transfer", server.TransferLog)
	p := s.part(server.Name, askFTP(server.Address), argv...)
	p.server = server.Name
	return p
}

// canWire tells whether processes can be given networks of their own.
func canWire() bool {
	return os.Geteuid() == 0 && tryWire() == nil
}
