package emulator

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The addresses of links come from 198.18.0.0/15, which is set aside for measurements of networks (RFC 2544) and used
// by no network in earnest. A run takes a block of 256 of them: one for the service's end of all links, one for each
// site.
const (
	range18 = 198<<8 | 18 // the upper half of the first address
	blocks  = 512
)

// A plan of addresses.
type block struct {
	base    netip.Prefix
	service netip.Addr
}

// newBlock picks a block of addresses that is unused on this machine. The block, and the service's
// address in it, are chosen at random: the kernel stores TCP metrics of a pair of addresses for an
// hour.
func newBlock() (block, error) {
	used, err := usedNetworks()
	if err != nil {
		return block{}, err
	}
	begin := rand.IntN(blocks)
	for i := range blocks {
		n := (begin + i) % blocks
		base := netip.AddrFrom4([4]byte{range18 >> 8, byte(range18&0xff + n>>8), byte(n), 0})
		b := block{base: netip.PrefixFrom(base, 24)}
		if b.free(used) {
			a := base.As4()
			a[3] = byte(1 + rand.IntN(254))
			b.service = netip.AddrFrom4(a)
			return b, nil
		}
	}
	return block{}, errors.New("no addresses are left for links: all of 198.18.0.0/15 is in use on this machine")
}

// site returns the address of a site.
func (b block) site(i int) netip.Addr {
	a := b.service.As4()
	a[3] = byte(1 + (int(a[3])-1+1+i)%254)
	return netip.AddrFrom4(a)
}

func (b block) free(used []netip.Prefix) bool {
	for _, u := range used {
		if u.Overlaps(b.base) {
			return false
		}
	}
	return true
}

// usedNetworks returns all IPv4 networks that this machine has an address in or a route to, except
// the default route.
func usedNetworks() ([]netip.Prefix, error) {
	var out []netip.Prefix
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("list the routes of this machine: %w", err)
	}
	for _, r := range routes {
		if p, ok := prefixOf(r.Dst); ok && p.Bits() > 0 {
			out = append(out, p)
		}
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list the addresses of this machine: %w", err)
	}
	for _, a := range addresses {
		if p, ok := prefixOf(a.IPNet); ok {
			out = append(out, p)
		}
		if p, ok := prefixOf(a.Peer); ok {
			out = append(out, p)
		}
	}
	return out, nil
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	a, ok := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(a.Unmap(), ones).Masked(), ok && a.Unmap().Is4()
}

// ownAddresses returns the IPv4 addresses of this machine that a site can have a route to: all
// except loopback addresses.
func ownAddresses() ([]netip.Addr, error) {
	list, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list the addresses of this machine: %w", err)
	}
	var out []netip.Addr
	for _, a := range list {
		if ip, ok := netip.AddrFromSlice(a.IP); ok && !ip.Unmap().IsLoopback() {
			out = append(out, ip.Unmap())
		}
	}
	return out, nil
}

// host returns the network that is only a.
func host(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}
}
