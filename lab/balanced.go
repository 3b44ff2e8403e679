package lab

import (
	"crypto/rand"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// netlinkRoute is NETLINK_ROUTE, which packages for other systems than Linux lack.
const netlinkRoute = 0

//go:embed haproxy.cfg
var haproxyConf string

//go:embed host.sh
var hostScript string

// balanced makes GridFTP servers gftp-1, gftp-2..., which have the same files and write a transfer
// log each, behind HAProxy: control connections come through it, data goes directly to each
// server's data address. If root starts them, each server is a host with a network of its own, and
// all its data goes through one interface of this machine that carries nothing but its data and
// control connections; otherwise all of them share the loopback interface.
func (c GridFTPConfig) balanced(s *System, program string, front *port) {
	haproxy := s.program(c.Config, "haproxy")
	s.Servers = []Server{{Name: Balancer, Role: Balancer, Address: front.Address(), URL: s.URL}}
	servers := c.shared
	if !c.Loopback && canWire() {
		servers = c.wired
	} else if !c.Loopback {
		s.Note = "All servers share the loopback interface: only root can give each an interface of its own."
	}
	servers(s, program)
	s.StatsSocket = filepath.Join(s.Dir, Balancer, "stats")
	if len(s.StatsSocket) > 90 { // HAProxy adds to it while it starts
		s.fail(fmt.Errorf("lab: gridftp: folder %s is too long a name for HAProxy's socket: give a shorter one", s.Dir))
	}
	s.newDir(Balancer)
	conf := s.config("haproxy.cfg", haproxyConf, map[string]any{
		"Socket": s.StatsSocket, "Front": front.Address(), "Servers": s.Servers[1:],
		"Connections": min(c.Connections*c.Servers+10, mostProxied()),
	})
	s.part(Balancer, askFTP(front.Address()), haproxy, "-db", "-f", conf).server = Balancer
}

// mostProxied returns the number of connections, of two files each, that HAProxy may have open.
func mostProxied() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Max > 1<<20 {
		return 100_000
	}
	return max(1, int(limit.Max)/2-50)
}

// shared makes servers whose data addresses are on the loopback interface.
func (c GridFTPConfig) shared(s *System, program string) {
	for n := range c.Servers {
		server := Server{Name: fmt.Sprintf("gftp-%d", n+1), Address: s.newPort(false).Address(), DataAddress: fmt.Sprintf("127.0.1.%d", n+1)}
		c.backend(s, server, program)
	}
}

// wired makes servers that are hosts of their own.
func (c GridFTPConfig) wired(s *System, program string) {
	wires, err := newWires(c.Servers)
	s.fail(err)
	for n, w := range wires {
		server := Server{Name: fmt.Sprintf("gftp-%d", n+1), Interface: w.name, DataAddress: w.their.String()}
		server.Address = net.JoinHostPort(server.DataAddress, "2811")
		dir := filepath.Join(s.Dir, server.Name)
		p := c.backend(s, server, "/bin/sh", "-c", hostScript, "host", server.Name, dir, fmt.Sprint(s.user), program)
		p.user, p.apart, p.wire, p.stale = -1, true, &w, filepath.Join(dir, "linked")
		s.openFile(server.Name+"/hosts", []byte("127.0.0.1 localhost\n"+server.DataAddress+" "+server.Name+"\n"), 0o644)
		s.openFile(server.Name+"/nsswitch.conf", []byte("passwd: files\ngroup: files\nhosts: files\n"), 0o644)
	}
}

// backend adds a server that is started by these words and the arguments of its program.
func (c GridFTPConfig) backend(s *System, server Server, argv ...string) *process {
	s.newDir(server.Name)
	server.TransferLog = s.file(filepath.Join(server.Name, "transfers"), nil)
	scheme, _, _ := strings.Cut(s.URL, ":")
	server.Role, server.URL, server.Data = DataServer, scheme+"://"+server.Address+s.Data, s.Data
	s.Servers = append(s.Servers, server)
	argv = append(append(argv, c.args(s, server)...), "-log-transfer", server.TransferLog)
	p := s.part(server.Name, askFTP(server.Address), argv...)
	p.server = server.Name
	return p
}

// canWire reports whether processes can be given networks of their own.
func canWire() bool {
	return os.Geteuid() == 0 && tryWire() == nil
}

// A wire is a pair of virtual interfaces between this machine and a process in a network of its
// own. When that process dies the network stays until the next one comes, so that its address
// refuses connections instead of leading to another process; it vanishes at any end of this
// process.
type wire struct {
	name  string         // of this machine's end
	ours  netip.Addr     // address of this machine's end
	their netip.Addr     // address of the other end, eth0
	space netns.NsHandle // the network at the other end; 0 before there is one
}

// bits of a network that holds the two ends of a wire.
const wireBits = 30

// newWires chooses names and addresses that nothing on this machine has: of 198.18.0.0/15, which is set aside for
// measuring (RFC 2544, RFC 6890).
func newWires(n int) ([]wire, error) {
	taken, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var seed [4]byte
	_, _ = rand.Read(seed[:]) // never fails
	group := fmt.Sprintf("weir%x", seed[:2])
	const nets = 1 << (wireBits - 15)
	start := int(binary.BigEndian.Uint32(seed[:]))
	var wires []wire
	for i := 0; len(wires) < n; i++ {
		if i == nets {
			return nil, errors.New("all addresses of 198.18.0.0/15 are in use on this machine")
		}
		base := 198<<24 | 18<<16 | uint32((start+i)%nets)<<(32-wireBits)
		w := wire{name: fmt.Sprintf("%s-%d", group, len(wires)+1), ours: address(base + 1), their: address(base + 2)}
		if !slices.ContainsFunc(taken, func(a net.Addr) bool { return within30(a, w.ours) }) {
			wires = append(wires, w)
		}
	}
	return wires, nil
}

func address(n uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}

// within30 reports whether an interface's network and the wire's have addresses in common.
func within30(a net.Addr, ours netip.Addr) bool {
	p, err := netip.ParsePrefix(a.String())
	return err == nil && p.Overlaps(netip.PrefixFrom(ours, wireBits))
}

// to draws the wire to a process that has a network of its own.
func (w *wire) to(pid int) error {
	if err := w.make(pid); err != nil {
		return fmt.Errorf("interface %s: %w", w.name, err)
	}
	if err := w.far(); err != nil {
		return fmt.Errorf("the other end of interface %s: %w", w.name, err)
	}
	return nil
}

// make makes both ends.
func (w *wire) make(pid int) (err error) {
	if err := w.cut(); err != nil {
		return err
	}
	if w.space, err = netns.GetFromPid(pid); err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = w.name
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsPid(pid)}
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	return dress(&netlink.Handle{}, w.name, w.ours)
}

// far gives the other end its address, and its network the way to this machine.
func (w *wire) far() error {
	there, err := netlink.NewHandleAt(w.space, netlinkRoute)
	if err != nil {
		return err
	}
	defer there.Close()
	if lo, err := there.LinkByName("lo"); err != nil {
		return err
	} else if err := there.LinkSetUp(lo); err != nil {
		return err
	}
	if err := dress(there, "eth0", w.their); err != nil {
		return err
	}
	return there.RouteAdd(&netlink.Route{Gw: w.ours.AsSlice()})
}

// dress gives an interface its address and switches it on.
func dress(h *netlink.Handle, name string, addr netip.Addr) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	if err := h.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(wireBits, 32)}}); err != nil {
		return err
	}
	return h.LinkSetUp(link)
}

// cut removes the wire; it is not an error if there is no wire.
func (w *wire) cut() error {
	if w.space > 0 {
		_ = w.space.Close()
	}
	link, err := netlink.LinkByName(w.name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	var none netlink.LinkNotFoundError
	if errors.As(err, &none) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// tryWire makes a pair of interfaces and removes it again.
func tryWire() error {
	wires, err := newWires(1)
	if err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = wires[0].name
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: attrs.Name + "p"}); err != nil {
		return err
	}
	return wires[0].cut()
}
