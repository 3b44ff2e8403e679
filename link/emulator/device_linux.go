package emulator

import (
	"fmt"
	"math"
	"net/netip"
	"os"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/unit"
	"weir/link"
)

// An end is one end of a link: a device and its two addresses.
type end struct {
	handle *netlink.Handle // of its namespace
	name   string
	own    netip.Addr
	peer   netip.Addr
}

// up gives the device its addresses and takes it into service.
func (e end) up(s link.Spec) error {
	dev, err := e.handle.LinkByName(e.name)
	if err != nil {
		return fmt.Errorf("device %s: %w", e.name, err)
	}
	addr := &netlink.Addr{IPNet: host(e.own)}
	if e.own != e.peer {
		addr.Peer = host(e.peer)
	}
	steps := []struct {
		what string
		err  func() error
	}{
		{"keep IPv6 away from", func() error { return e.without6(dev) }},
		{"set the packet size of", func() error { return e.handle.LinkSetMTU(dev, int(s.MTU)) }},
		{"set the queue of", func() error { return e.handle.LinkSetTxQLen(dev, 1000) }},
		{"give an address to", func() error { return e.handle.AddrAdd(dev, addr) }},
		{"take into service", func() error { return e.handle.LinkSetUp(dev) }},
		{"set the route of", func() error { return e.route(dev, e.peer, s) }},
	}
	for _, step := range steps {
		if err := step.err(); err != nil {
			return fmt.Errorf("%s device %s: %w", step.what, e.name, err)
		}
	}
	return nil
}

// without6 keeps the kernel from soliciting IPv6 routers over the link, if it supports IPv6.
func (e end) without6(dev netlink.Link) error {
	if _, err := os.Stat("/proc/net/if_inet6"); err != nil {
		return nil
	}
	return e.handle.LinkSetIP6AddrGenMode(dev, 1) // IN6_ADDR_GEN_MODE_NONE of linux/if_link.h
}

// route routes packets for an address over the device, with the link's congestion control.
func (e end) route(dev netlink.Link, to netip.Addr, s link.Spec) error {
	err := e.handle.RouteReplace(&netlink.Route{
		LinkIndex: dev.Attrs().Index, Dst: host(to), Src: e.own.AsSlice(), Scope: netlink.SCOPE_LINK, Congctl: s.Congestion,
	})
	if err != nil && s.Congestion != "" {
		return fmt.Errorf("congestion control %s: %w (this kernel has %s)", s.Congestion, err, congestions())
	}
	return err
}

func congestions() string {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		return "those of sysctl net.ipv4.tcp_available_congestion_control"
	}
	return string(b[:max(0, len(b)-1)])
}

// superTime limits the time of a super-packet on the wire: its segments arrive at once, but would
// have arrived one after the other.
const superTime = 0.0005

// setBurst bounds the super-packets that the kernel hands to a device.
func (e end) setBurst(rate unit.Bitrate, mtu unit.Size) error {
	most := 44 // segments of 1500 bytes in 64 KB
	if rate > 0 {
		most = int(min(44, max(1, superTime*float64(rate)/8/float64(mtu))))
	}
	dev, err := e.handle.LinkByName(e.name)
	if err != nil {
		return err
	}
	return e.handle.LinkSetGSOMaxSegs(dev, most)
}

// loopbackUp takes the loopback of a namespace into service.
func loopbackUp(h *netlink.Handle) error {
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	return h.LinkSetUp(lo)
}

// ethtoolCmd is struct ethtool_cmd of linux/ethtool.h.
type ethtoolCmd struct {
	cmd                   uint32
	supported, advertised uint32
	speed                 uint16
	_                     [14]byte
	speedHigh             uint16
	_                     [14]byte
}

// setSpeed sets the speed of a TUN device, in whole Mbit/s, to the speed of its link, for programs
// that monitor interfaces: by default the device reports 10 Mbit/s. An unknown speed does no harm,
// so nothing fails here.
func setSpeed(name string, rate unit.Bitrate) {
	mbit := uint32(math.Round(float64(rate) / 1e6))
	if mbit == 0 {
		mbit = math.MaxUint32 // SPEED_UNKNOWN
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	cmd := ethtoolCmd{cmd: unix.ETHTOOL_SSET, speed: uint16(mbit), speedHigh: uint16(mbit >> 16)}
	_ = ethtool(fd, name, &cmd)
}

// ethtool sends an ethtool command for a device through any socket.
func ethtool(fd int, name string, cmd *ethtoolCmd) error {
	var req struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(req.name[:unix.IFNAMSIZ-1], name)
	req.data = unsafe.Pointer(cmd)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return os.NewSyscallError("SIOCETHTOOL", errno)
	}
	return nil
}
