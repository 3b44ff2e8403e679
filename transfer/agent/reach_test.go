package agent

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"weir/internal/tier"
	"weir/lab/labtest"
	"weir/transfer"
)

// The allowed addresses depend on the addresses of the coordinator and of the own endpoint, or on
// the option.
func TestReach(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for name, tt := range map[string]struct {
		given          *bool
		boss, endpoint string
		good           string
	}{
		"all on this machine":           {nil, "127.0.0.1", "http://127.0.0.1:1", "public network loopback"},
		"a laboratory":                  {nil, "10.1.2.3", "https://10.1.2.4:1", "public network"},
		"by IPv6":                       {nil, "fd00::1", "", "public network"},
		"a public coordinator":          {nil, "8.8.8.8", "", "public"},
		"and a door that nobody finds":  {nil, "8.8.8.8", "http://127.0.0.1:1", "public"},
		"and a door in a laboratory":    {nil, "8.8.8.8", "https://192.168.1.1:1", "public network"},
		"a link-local coordinator":      {nil, "169.254.1.1", "http://169.254.1.2:1", "public"},
		"nobody has answered":           {nil, "", "", "public"},
		"all was allowed":               {&yes, "8.8.8.8", "", "public network loopback special"},
		"nothing was, on this machine":  {&no, "127.0.0.1", "http://127.0.0.1:1", "public"},
		"nothing was, in a laboratory ": {&no, "10.1.2.3", "http://10.1.2.3:1", "public"},
	} {
		r := newReach("A", tt.given)
		if tt.boss != "" {
			r.boss = &net.TCPAddr{IP: net.ParseIP(tt.boss), Port: 1}
		}
		r.learn(t.Context(), tt.endpoint)
		for area, all := range map[string]string{
			"public":   "8.8.8.8 11.0.0.1 2606:4700::1 ::ffff:8.8.8.8",
			"network":  "10.0.0.1 172.31.0.1 192.168.0.1 100.64.0.1 fd00::1 ::ffff:10.0.0.1",
			"loopback": "127.0.0.1 127.8.8.8 ::1 ::ffff:127.0.0.1",
			"special": "169.254.169.254 fe80::1 0.0.0.0 :: 255.255.255.255 224.0.0.1 64:ff9b::a9fe:a9fe 2002:7f00:1:: " +
				"::ffff:169.254.169.254 192.0.2.1",
		} {
			for _, ip := range strings.Fields(all) {
				err := r.check(netip.AddrPortFrom(netip.MustParseAddr(ip), 80))
				if want := strings.Contains(tt.good, area); (err == nil) != want {
					t.Errorf("%s: %s: %v", name, ip, err)
				}
			}
		}
	}
}

// victim starts a server that only this machine should reach.
func victim(t *testing.T) (url string, asked *atomic.Int64) {
	asked = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte("secret"))
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// An agent on the same machine as its coordinator connects to this machine's addresses, but not to
// link-local addresses, also after a redirect; with Private set to false it connects to no such
// address.
func TestAgentsAreNotSentAnywhere(t *testing.T) {
	t.Parallel()
	b := newBoss(t)
	from := b.runs("A", t.TempDir())
	to := b.runs("B", t.TempDir())
	no := false
	o := b.options("C", t.TempDir())
	o.Private = &no
	strict := b.run(o)
	secret, asked := victim(t)
	away := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/latest/meta-data/", http.StatusFound))
	t.Cleanup(away.Close)
	for item, tt := range map[int64]struct {
		to   *site
		url  string
		mode transfer.Mode
		good bool
		text string
	}{
		1: {to, "", transfer.Pull, true, ""},
		2: {to, "http://169.254.169.254/latest/meta-data/", transfer.Pull, false, "169.254.169.254 is an address that no site has"},
		3: {to, away.URL + "/f3", transfer.Pull, false, "169.254.169.254 is an address that no site has"},
		4: {to, "http://[fe80::1%25lo]/f", transfer.Pull, false, "that no site has"},
		5: {to, "http://0.0.0.0:" + portOf(secret) + "/f", transfer.Pull, false, "that no site has"},
		6: {strict, secret + "/f6", transfer.Pull, false, "127.0.0.1 is an address of this machine itself"},
		// a name is looked up first
		7: {strict, "http://localhost:" + portOf(secret) + "/f7", transfer.Pull, false, "an address of this machine itself"},
		8: {strict, secret + "/store/f8", transfer.Push, false, "--allow-private"},
	} {
		l := b.lease(from, tt.to, item, 1, "secret")
		if tt.url != "" {
			l.Source.URL, l.Source.Token = tt.url, ""
		}
		if l.Mode = tt.mode; l.Mode == transfer.Push {
			l.Source, l.Dest = l.Dest, transfer.End{Site: "X", Path: l.Source.Path, URL: tt.url}
			b.file(tt.to, l)
		}
		b.gives(tt.to.o.Site, transfer.Work{Leases: []transfer.Lease{l}})
		out, _ := b.ended(item, 1)
		if tt.good != (out.Fault == "") || !tt.good && (out.Fault != transfer.Denied || !strings.Contains(out.Reason, tt.text)) {
			t.Errorf("%d: %+v", item, out)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("what only this machine can reach was asked %d times", n)
	}
}

// file creates the source of a push.
func (b *boss) file(at *site, l transfer.Lease) {
	b.t.Helper()
	if err := os.MkdirAll(at.root+"/store", 0o750); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(at.root+"/"+l.Source.Path, []byte("secret"), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func portOf(url string) string { return url[strings.LastIndexByte(url, ':')+1:] }

// publicAddress is an address of the public internet, assigned inside a network namespace; inPublic
// marks the process in that namespace.
const (
	publicAddress = "11.0.0.1"
	inPublic      = "WEIR_AGENT_TEST_PUBLIC"
)

func publicly() bool { return os.Getenv(inPublic) != "" }

// An agent of a public coordinator cannot be sent to servers that only its machine can reach, by
// any name: it is tested by a process in a network of its own, where the coordinator has an address
// of the public internet.
func TestPublicAgents(t *testing.T) {
	t.Parallel()
	if !publicly() {
		labtest.Need(t, "unshare")
		labtest.Need(t, "ip")
		args := []string{"--net", "--map-root-user", os.Args[0], "-test.run=^TestPublicAgents$", "-test.v"}
		if os.Geteuid() == 0 {
			args = append(args[:1], args[2:]...)
		}
		c := exec.CommandContext(t.Context(), "unshare", args...)
		c.Env = append(os.Environ(), inPublic+"=1")
		out, err := c.CombinedOutput()
		if strings.Contains(string(out), "unshare failed") || strings.Contains(string(out), "Operation not permitted") {
			tier.Without(t, "unshare", "a network of its own is not allowed here")
		}
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	for _, args := range []string{"link set lo up", "addr add " + publicAddress + "/32 dev lo"} {
		if out, err := exec.CommandContext(t.Context(), "ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	b := newBoss(t)
	endpoint := b.options("A", t.TempDir())
	endpoint.Endpoint.Listen = publicAddress + ":0"
	from := b.run(endpoint)
	o := b.options("B", t.TempDir())
	o.Endpoint = nil
	to := b.run(o)
	secret, asked := victim(t)
	good := b.lease(from, to, 1, 1, "secret")
	good.Source.Pin = from.endpoint.pin
	b.gives("B", transfer.Work{Leases: []transfer.Lease{good}})
	if out, _ := b.ended(1, 1); out.Fault != "" {
		t.Errorf("from a public door: %+v", out)
	}
	for item, url := range map[int64]string{
		2: secret + "/f2", 3: "http://localhost:" + portOf(secret) + "/f3", 4: "http://169.254.169.254/f4", 5: "http://10.0.0.1/f5",
		6: "http://[::1]:" + portOf(secret) + "/f6",
	} {
		l := b.lease(from, to, item, 1, "secret")
		l.Source.URL, l.Source.Token = url, ""
		b.gives("B", transfer.Work{Leases: []transfer.Lease{l}})
		if out, _ := b.ended(item, 1); out.Fault != transfer.Denied || !strings.Contains(out.Reason, "--allow-private") {
			t.Errorf("%s: %+v", url, out)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("what only this machine can reach was asked %d times", n)
	}
}
