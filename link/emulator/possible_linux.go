package emulator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"weir/link"
)

// Best chooses how to make links here. probe is a program and its arguments that writes what Probe returns to its
// standard output, as JSON: this program, usually. It tries what is possible without privileges in a network of its
// own; without it that is not considered. Trying takes some milliseconds and leaves nothing.
func Best(ctx context.Context, links []link.Named, probe []string) Choice {
	here := Probe()
	if here.Spaces == "" || len(probe) == 0 {
		return choose(links, here, nil)
	}
	there, err := probeIsolated(ctx, probe)
	if err != nil {
		there = Possible{Spaces: err.Error()}
	}
	return choose(links, here, &there)
}

func probeIsolated(ctx context.Context, probe []string) (Possible, error) {
	cmd := exec.CommandContext(ctx, probe[0], probe[1:]...)
	var said bytes.Buffer
	cmd.Args[0], cmd.Stderr = "weir", &said
	isolate(cmd)
	out, err := cmd.Output()
	if err != nil {
		if text := strings.TrimSpace(said.String()); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
		return Possible{}, err
	}
	var p Possible
	return p, json.Unmarshal(out, &p)
}

// Probe tries what is possible in this process.
func Probe() Possible { return probeWith(tunPath) }

func probeWith(device string) Possible {
	var p Possible
	s, err := newSpace()
	if err != nil {
		p.Spaces = reason(errors.Unwrap(err), "the capability CAP_SYS_ADMIN, as root has")
		p.Userspace, p.Netem, p.Tbf = p.Spaces, p.Spaces, p.Spaces
		return p
	}
	defer s.close()
	// The service's end is made where we are.
	t, err := newTun(device)
	if err == nil {
		err = errors.Join(t.file.Close(), s.in(func() error {
			t, err := newTun(device)
			if err != nil {
				return err
			}
			return t.file.Close()
		}))
	}
	p.Userspace = reason(err, device+" and the capability CAP_NET_ADMIN")
	if errors.Is(err, unix.EPERM) {
		p.Spaces = p.Userspace // nor can there be any other device
	}
	h, err := netlink.NewHandleAt(netns.NsHandle(int(s.file.Fd())))
	if err != nil {
		p.Netem, p.Tbf = err.Error(), err.Error()
		return p
	}
	defer h.Close()
	p.Netem = tryQueue(h, link.Spec{Rate: 1e6, RTT: 2e6})
	p.Tbf = tryQueue(h, link.Spec{Rate: 1e6})
	return p
}

// tryQueue gives the loopback of an unused namespace a queue.
func tryQueue(h *netlink.Handle, s link.Spec) string {
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err.Error()
	}
	q := queueFor(lo, setting{Spec: s.Complete()}, s.Rate)
	err = h.QdiscReplace(q)
	if errors.Is(err, unix.ENOENT) {
		return fmt.Sprintf("this kernel has no %s (module sch_%s)", q.Type(), q.Type())
	}
	return reason(err, "")
}

// reason puts an error in words, and what would help.
func reason(err error, help string) string {
	if err == nil {
		return ""
	}
	if help == "" {
		return err.Error()
	}
	return err.Error() + " (this needs " + help + ")"
}
