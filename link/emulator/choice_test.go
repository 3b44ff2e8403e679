package emulator

import (
	"strings"
	"testing"

	"weir/link"
)

func TestChoose(t *testing.T) {
	far := []link.Named{{Spec: link.Spec{Rate: 2e6, RTT: 51 * 1e6, Loss: 0.01}}}
	slow := []link.Named{{Spec: link.Spec{Rate: 2e6}}}
	shared := []link.Named{{Name: "a", Spec: link.Spec{Trunk: "line"}}, {Name: "line", Spec: link.Spec{Rate: 2e6}}}
	all, none := Possible{}, Possible{Spaces: "operation not permitted"}
	noTun := Possible{Userspace: "open /dev/net/tun: permission denied", Netem: "this kernel has no netem"}
	for name, c := range map[string]struct {
		links    []link.Named
		here     Possible
		isolated *Possible
		way      Way
		own      bool
		want     []string
	}{
		"all": {far, all, nil, Userspace, false, []string{"in network namespaces, with a queue in user space"}},
		"none": {far, none, &none, Proxy, false,
			[]string{"by a TCP proxy, since this process cannot make network namespaces: operation not permitted", "slow start", "nothing is lost"}},
		"isolated": {far, none, &all, Userspace, true,
			[]string{"in a network of their own, since this process cannot make network namespaces"}},
		"without netem": {far, noTun, nil, Proxy, false,
			[]string{"packets cannot pass through user space: open /dev/net/tun: permission denied; and the kernel's own queues cannot " +
				"delay or lose packets"}},
		"rate only":      {slow, noTun, nil, Kernel, false, []string{"with the kernel's own queues, since packets cannot"}},
		"trunk":          {shared, noTun, nil, Proxy, false, []string{"the kernel's own queues are one for each link"}},
		"trunk, netem":   {shared, Possible{Userspace: "no TUN device"}, nil, Proxy, false, []string{"cannot be shared as a trunk is"}},
		"isolated, rate": {slow, none, &noTun, Kernel, true, []string{"with the kernel's own queues"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := choose(c.links, c.here, c.isolated)
			if got.Way != c.way || got.Isolated != c.own {
				t.Errorf("%+v", got)
			}
			for _, w := range c.want {
				if !strings.Contains(got.String(), w) {
					t.Errorf("%s\nwithout %s", got, w)
				}
			}
		})
	}
}
