package emulator

import (
	"slices"
	"strings"

	"weir/link"
)

// A Way is how links are made.
type Way string

// The ways, the best first.
const (
	Userspace Way = "userspace" // network namespaces, and a queue in user space
	Kernel    Way = "kernel"    // network namespaces, and the kernel's queues (netem, tbf)
	Proxy     Way = "proxy"     // a TCP proxy on the loopback
)

// A Choice is a way to make links, and why it was taken.
type Choice struct {
	Way Way
	// Isolated tells that the links are possible only where this program is started once more by Isolate, in a
	// network of its own.
	Isolated bool
	// Why says, a sentence each, why what is better is not possible.
	Why []string
	// Limitations says, a sentence each, what the links will not show.
	Limitations []string
}

// Possible says why something is not possible here; empty is possible.
type Possible struct {
	Spaces    string `json:"namespaces"`
	Userspace string `json:"userspace"`
	Netem     string `json:"netem"`
	Tbf       string `json:"tbf"`
}

// choose returns the best way to make links where here is possible, and isolated in a network of its own; isolated is
// nil if that is not possible or was not tried.
func choose(links []link.Named, here Possible, isolated *Possible) Choice {
	c := Choice{}
	if c.settle(links, here, false) || isolated != nil && c.settle(links, *isolated, true) {
		return c
	}
	c.Way, c.Limitations = Proxy, proxyLimitations(links)
	return c
}

// settle takes the best of what is possible at one place, if links can be made there.
func (c *Choice) settle(links []link.Named, p Possible, isolated bool) bool {
	if p.Spaces != "" {
		if isolated {
			c.Why = append(c.Why, "nor can this user, for himself: "+p.Spaces)
		} else {
			c.Why = append(c.Why, "this process cannot make network namespaces: "+p.Spaces)
		}
		return false
	}
	if p.Userspace == "" {
		c.Way = Userspace
	} else {
		c.Why = append(c.Why, "packets cannot pass through user space: "+p.Userspace)
		if why := p.kernel(links); why != "" {
			c.Why = append(c.Why, why)
			return false
		}
		c.Way, c.Limitations = Kernel, kernelLimitations(links)
	}
	if c.Isolated = isolated; isolated {
		c.Limitations = append(c.Limitations, "the service is outside of that network and is reached through a gate, "+
			"where the link's TCP connections end")
	}
	return true
}

const noKernelTrunk = "the kernel's own queues are one for each link, and cannot be shared as a trunk is"

// kernel says why the kernel's queues are not enough for links.
func (p *Possible) kernel(links []link.Named) string {
	netem := slices.ContainsFunc(links, func(l link.Named) bool { return l.Spec.RTT > 0 || l.Spec.Loss > 0 || l.Spec.Jitter > 0 })
	switch {
	case len(link.Trunks(links)) > 0:
		return noKernelTrunk
	case netem && p.Netem != "":
		return "the kernel's own queues cannot delay or lose packets: " + p.Netem
	case !netem && p.Tbf != "":
		return "the kernel's own queues cannot hold a rate: " + p.Tbf
	}
	return ""
}

func kernelLimitations(links []link.Named) []string {
	out := []string{"how long packets waited in queues is not known"}
	if slices.ContainsFunc(links, func(l link.Named) bool { return l.Spec.Jitter > 0 }) {
		out = append(out, "jitter is drawn for each packet, so that packets may overtake each other, as they seldom do in networks")
	}
	return out
}

func proxyLimitations(links []link.Named) []string {
	out := []string{
		"TCP runs over the loopback: its slow start, windows, and recovery from loss are not those of the link",
		"a connection is there at once; what it would have waited for comes before its first byte",
	}
	if slices.ContainsFunc(links, func(l link.Named) bool { return l.Spec.Loss > 0 }) {
		out = append(out, "nothing is lost, whatever the link's loss is")
	}
	return append(out, "a program of others that is redirected to another server gets there past the link")
}

// String says the choice in sentences.
func (c Choice) String() string {
	var b strings.Builder
	switch c.Way {
	case Userspace:
		b.WriteString("links are emulated in network namespaces, with a queue in user space")
	case Kernel:
		b.WriteString("links are emulated in network namespaces, with the kernel's own queues")
	case Proxy:
		b.WriteString("links are emulated by a TCP proxy")
	}
	if c.Isolated {
		b.WriteString(", in a network of their own")
	}
	for i, why := range c.Why {
		b.WriteString(map[bool]string{true: ", since ", false: "; and "}[i == 0] + why)
	}
	for i, blind := range c.Limitations {
		b.WriteString(map[bool]string{true: ". This does not show all: ", false: "; "}[i == 0] + blind)
	}
	return b.String()
}
