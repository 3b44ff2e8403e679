package diagnosis

import (
	"net"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
	"weir/storage/webdav"
	"weir/storage/xrootd"
)

// apart puts the goroutine of t, and the programs that it starts, into a network of their own until
// t ends. shell configures the network.
func apart(t *testing.T, shell string) {
	t.Helper()
	labtest.Need(t, "ip", "iptables")
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	if _, err := netns.New(); err != nil {
		tier.Without(t, "netns", "making a network of its own: "+err.Error())
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-ec", shell).CombinedOutput(); err != nil {
		tier.Without(t, "netns", "setting up a network: "+string(out)+err.Error())
	}
}

// TestNetworks checks that the diagnosis of an unreachable host names the reason, for every
// protocol: missing or prohibiting routes, firewalls that drop or reject packets, neighbors that do
// not respond, address families that this machine lacks.
func TestNetworks(t *testing.T) {
	const down, route, closed = Unconnected, Unreachable, Refused
	for _, tt := range []struct {
		name, host string
		kind       Kind
		shell      string // in a network with lo up and without a host at 192.0.2.1
	}{
		{"a dropped SYN", "192.0.2.1", down, ""},
		{"a dropped SYN at a firewall", "127.0.0.1", down, "iptables -A INPUT -p tcp --dport 2345 -j DROP"},
		{"dropped answers", "127.0.0.1", down, "iptables -A INPUT -p tcp --sport 2345 -j DROP"},
		{"a dropped SYN here", "192.0.2.1", down, "iptables -A OUTPUT -p tcp -j DROP"},
		{"reject with a port", "127.0.0.1", closed, "iptables -A INPUT -p tcp -j REJECT"},
		{"reject with a reset", "127.0.0.1", closed, "iptables -A INPUT -p tcp --dport 2345 -j REJECT --reject-with tcp-reset"},
		{"reject with a host", "127.0.0.1", route, "iptables -A INPUT -p tcp -j REJECT --reject-with icmp-host-unreachable"},
		{"reject with a net", "127.0.0.1", route, "iptables -A INPUT -p tcp -j REJECT --reject-with icmp-net-unreachable"},
		{"reject by an administrator", "127.0.0.1", route, "iptables -A INPUT -p tcp -j REJECT --reject-with icmp-admin-prohibited"},
		{"nothing listens", "127.0.0.1", closed, ""},
		{"no route", "198.51.100.1", route, ""},
		{"an unreachable route", "198.51.100.1", route, "ip route add unreachable 198.51.100.0/24"},
		{"a blackhole", "198.51.100.1", route, "ip route add blackhole 198.51.100.0/24"},
		{"a prohibited route", "198.51.100.1", route, "ip route add prohibit 198.51.100.0/24"},
		{"a route that throws", "198.51.100.1", route, "ip route add throw 198.51.100.0/24"},
		{"a neighbor that does not answer", "192.0.2.9", down, ""}, // after some seconds the kernel has no route
		{"IPv6 only", "[2001:db8::1]", route, ""},
		{"IPv6 into a blackhole", "[2001:db8::1]", route, "ip route add blackhole 2001:db8::/32"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			apart(t, "ip link set lo up; ip link add eth0 type veth peer eth1; ip link set eth0 up; ip link set eth1 up\n"+
				"ip address add 192.0.2.2/24 dev eth0; ip neighbor add 192.0.2.1 lladdr 02:00:00:00:00:01 dev eth0\n"+tt.shell)
			if strings.HasPrefix(tt.name, "dropped answers") {
				l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:2345")
				require.NoError(t, err)
				defer l.Close()
			}
			for scheme, driver := range map[string]storage.Driver{"http": webdav.Driver(), "root": xrootd.Driver()} {
				target := scheme + "://" + tt.host + ":2345/data"
				c := storagetest.Client(t, driver, storagetest.TargetOf(t, target, storage.Credentials{}))
				_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Login, Timeout: 500 * time.Millisecond}, ignored{})
				d, _ := Of(t.Context(), parsed(t, target), storage.Auth{}, err, Caller{}, true)
				if d.Kind != tt.kind || d.Hint() == "" {
					t.Errorf("%s: %v: %q, want %q", target, err, d.Kind, tt.kind)
				}
			}
		})
	}
}

type ignored struct{}

func (ignored) Reached(storage.Phase) {}
func (ignored) Moved(int)             {}
func (ignored) ServedBy(string)       {}
