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
func (s *System) balanced(c GridFTPConfig, program string, front *port) error {
	haproxy, err := c.program("haproxy")
	if err != nil {
		return err
	}
	s.Servers = []Server{{Name: Balancer, Role: Balancer, Address: front.address(), URL: s.URL}}
	servers := s.shared
	if !c.Loopback && canWire() {
		servers = s.wired
	} else if !c.Loopback {
		s.Note = "All servers share the loopback interface: only root can give each an interface of its own."
	}
	if err := servers(c, program); err != nil {
		return err
	}
	s.StatsSocket = filepath.Join(s.Dir, Balancer, "stats")
	if len(s.StatsSocket) > 90 { // HAProxy adds to it while it starts
		return fmt.Errorf("lab: gridftp: folder %s is too long a name for HAProxy's socket: give a shorter one", s.Dir)
	}
	if err := s.mkdir(filepath.Dir(s.StatsSocket)); err != nil {
		return err
	}
	conf, err := render(haproxyConf, map[string]any{
		"Socket": s.StatsSocket, "Front": front.address(), "Servers": s.Servers[1:], "Connections": min(c.Connections*c.Servers+10, mostProxied()),
	})
	if err != nil {
		return err
	}
	path, err := s.write("haproxy.cfg", conf)
	if err != nil {
		return err
	}
	if err := s.part(Balancer, askFTP(front.address()), haproxy, "-db", "-f", path); err != nil {
		return err
	}
	s.parts[len(s.parts)-1].server = Balancer
	return nil
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
func (s *System) shared(c GridFTPConfig, program string) error {
	for n := range c.Servers {
		p, err := s.port(false)
		if err != nil {
			return err
		}
		server := Server{Name: fmt.Sprintf("gftp-%d", n+1), Address: p.address(), DataAddress: fmt.Sprintf("127.0.1.%d", n+1)}
		if _, err := s.backend(c, server, program); err != nil {
			return err
		}
	}
	return nil
}

// wired makes servers that are hosts of their own.
func (s *System) wired(c GridFTPConfig, program string) error {
	wires, err := newWires(c.Servers)
	if err != nil {
		return err
	}
	for n, w := range wires {
		server := Server{Name: fmt.Sprintf("gftp-%d", n+1), Interface: w.name, DataAddress: w.their.String()}
		server.Address = net.JoinHostPort(server.DataAddress, "2811")
		dir := filepath.Join(s.Dir, server.Name)
		p, err := s.backend(c, server, "/bin/sh", "-c", hostScript, "host", server.Name, dir, fmt.Sprint(s.user), program)
		if err != nil {
			return err
		}
		p.user, p.apart, p.wire, p.stale = -1, true, &w, filepath.Join(dir, "linked")
		for name, text := range map[string]string{
			"hosts":         "127.0.0.1 localhost\n" + server.DataAddress + " " + server.Name + "\n",
			"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
		} {
			path, err := s.write(filepath.Join(server.Name, name), []byte(text))
			if err != nil {
				return err
			}
			if err := os.Chmod(path, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// backend adds a server that is started by these words and the arguments of its
// program.
func (s *System) backend(c GridFTPConfig, server Server, argv ...string) (*process, error) {
	if err := s.mkdir(filepath.Join(s.Dir, server.Name)); err != nil {
		return nil, err
	}
	var err error
	if server.TransferLog, err = s.write(filepath.Join(server.Name, "transfers"), nil); err != nil {
		return nil, err
	}
	server.Role, server.URL, server.Data = DataServer, "ftp://"+server.Address+s.Data, s.Data
	s.Servers = append(s.Servers, server)
	argv = append(append(argv, s.gridftpArgs(c, server)...), "-log-transfer", server.TransferLog)
	if err := s.part(server.Name, askFTP(server.Address), argv...); err != nil {
		return nil, err
	}
	p := s.parts[len(s.parts)-1]
	p.server = server.Name
	return p, nil
}

// canWire tells whether processes can be given networks of their own.
func canWire() bool {
	return os.Geteuid() == 0 && tryWire() == nil
}
