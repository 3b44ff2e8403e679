package monitor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
)

// startHAProxy starts a real HAProxy in front of servers, called a, b, c ..., and
// returns the address that it listens at, its statistics socket and page.
func startHAProxy(t *testing.T, servers ...string) (address, socket, page string) {
	t.Helper()
	haproxy := program(t, "haproxy")
	dir := t.TempDir()
	ports := []int{freePort(t), freePort(t)}
	socket = filepath.Join(dir, "s")
	var b strings.Builder
	fmt.Fprintf(&b, "global\n stats socket %s mode 600 level operator\ndefaults\n mode tcp\n timeout connect 5s\n timeout client 1m\n "+
		"timeout server 1m\n", socket)
	fmt.Fprintf(&b, "frontend in\n bind 127.0.0.1:%d\n default_backend files\nbackend files\n balance roundrobin\n", ports[0])
	for i, s := range servers {
		fmt.Fprintf(&b, " server %c %s weight %d maxconn 50\n", 'a'+i, s, 10+i)
	}
	fmt.Fprintf(&b, "backend others\n server x 127.0.0.1:9\nfrontend statistics\n mode http\n bind 127.0.0.1:%d\n stats enable\n "+
		"stats uri /stats\n", ports[1])
	config := filepath.Join(dir, "haproxy.cfg")
	require.NoError(t, os.WriteFile(config, []byte(b.String()), 0o600))
	started(t, exec.Command(haproxy, "-db", "-f", config))
	require.Eventually(t, "HAProxy's socket", func() bool {
		_, err := ask(socket).ask(t.Context())
		return err == nil
	})
	return fmt.Sprintf("127.0.0.1:%d", ports[0]), socket, fmt.Sprintf("http://127.0.0.1:%d/stats", ports[1])
}

func ask(socket string) *haproxy { return &haproxy{network: "unix", address: socket} }

// TestRealHAProxy sends requests through a real HAProxy and reads its statistics in all ways.
func TestRealHAProxy(t *testing.T) {
	t.Parallel()
	const size = 100_000
	answer := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) }
	one, two := httptest.NewServer(http.HandlerFunc(answer)), httptest.NewServer(http.HandlerFunc(answer))
	defer one.Close()
	defer two.Close()
	address, socket, page := startHAProxy(t, one.Listener.Addr().String(), two.Listener.Addr().String())
	for _, from := range []string{socket, page, page + ";csv"} {
		k := &keep{}
		w, err := Start(t.Context(), nil, Options{Balancer: BalancerConfig{HAProxy: from, Service: "files"}}, k)
		require.NoError(t, err)
		require.Eventually(t, "a first sample", func() bool { return len(k.of(balancerName)) > 0 })
		const requests = 10
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
		for range requests {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, nil)
			require.NoError(t, err)
			resp, err := client.Do(req)
			require.NoError(t, err)
			_ = resp.Body.Close()
		}
		require.NoError(t, w.Stop())
		sum := Balancer{}
		each := map[string]int64{}
		for _, s := range k.of(balancerName) {
			if s.Error != "" || s.Role != "other" || s.Balancer.Kind != HAProxy || len(s.Balancer.Servers) != 2 {
				t.Fatalf("%+v, %+v", s, s.Balancer)
			}
			sum.Connected += s.Balancer.Connected
			sum.Sent += s.Balancer.Sent
			for i, b := range s.Balancer.Servers {
				each[b.Name] += b.Connected
				if b.Weight != 10+i || b.Service != "files" || b.Limit != 50 || from == socket &&
					b.Address != [2]string{one.Listener.Addr().String(), two.Listener.Addr().String()}[i] {
					t.Errorf("%+v", b)
				}
			}
		}
		if sum.Connected != requests || each["a"]+each["b"] != requests || each["a"] == 0 || each["b"] == 0 || sum.Sent <= 0 {
			t.Errorf("%s: %+v, each %v", from, sum, each)
		}
	}
}

func TestBalancersThatDoNotAnswer(t *testing.T) {
	lies := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
	defer lies.Close()
	if _, err := os.Stat("/proc/net/ip_vs"); err == nil {
		t.Skip("this machine has IPVS")
	}
	for _, c := range []struct {
		b    BalancerConfig
		want string
	}{
		{BalancerConfig{HAProxy: filepath.Join(t.TempDir(), "none")}, "no such file"},
		{BalancerConfig{HAProxy: lies.URL}, `it starts "hello"`},
		{BalancerConfig{HAProxy: lies.Listener.Addr().String()}, "not HAProxy's statistics"},
		{BalancerConfig{IPVS: lies.URL}, "not a page of Prometheus metrics"},
		{BalancerConfig{IPVS: LocalIPVS}, "no IPVS"},
	} {
		k := &keep{}
		w, err := Start(t.Context(), nil, Options{Balancer: c.b}, k)
		require.NoError(t, err)
		require.Eventually(t, "an error", func() bool { return len(k.of(balancerName)) > 0 })
		require.NoError(t, w.Stop())
		if s := k.of(balancerName)[0]; !strings.Contains(s.Error, c.want) {
			t.Errorf("%+v: %q, want %q", c.b, s.Error, c.want)
		}
	}
}

// A kernelTable is /proc/net/ip_vs in the form of the kernel's ip_vs_info_seq_show, with the
// addresses of the fixture of github.com/prometheus/procfs (ipvs_test.go), so that the correct
// result is known from their reader: 192.168.82.22:3306 and so on.
const kernelTable = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  C0A80016:0CEA wlc
  -> C0A85216:0CEA      Tunnel  100    248        2
  -> C0A85318:0CEA      Tunnel  100    248        2
  -> C0A85315:0CEA      Tunnel  100    248        1
TCP  [2620:0000:0000:0000:0000:0000:0000:0001]:0050 sh persistent 600
  -> [2620:0000:0000:0000:0000:0000:0000:0002]:0050      Route   1      10         20
FWM  10001000 wlc
  -> C0A8321A:0CEA      Route   0      0          1
`

// As ip_vs_stats_show writes it; its figures are taken from the same fixture.
const kernelStats = `   Total Incoming Outgoing         Incoming         Outgoing
   Conns  Packets  Packets            Bytes            Bytes
 16AA370 E33656E5        0     51D8C8883AB3                0

 Conns/s   Pkts/s   Pkts/s          Bytes/s          Bytes/s
       4    1FB3C        0          1282A8F                0
`

// As print_service_entry of ipvsadm 1.31 prints it with -Ln --stats --exact.
const adminStats = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port                   Conns       InPkts      OutPkts          InBytes         OutBytes
  -> RemoteAddress:Port
TCP  192.168.0.22:3306                     744         9999            0        123456789                0
  -> 192.168.82.22:3306                    248         3333            0         41152263                7
  -> 192.168.83.24:3306                    248         3333            0         41152263                0
FWM  10001000                                1            1            0               40                0
  -> 192.168.50.26:3306                      1            1            0               40                0
`

func TestIPVS(t *testing.T) {
	b, err := parseIPVS([]byte(kernelTable))
	require.NoError(t, err)
	require.NoError(t, b.totals([]byte(kernelStats)))
	b.bytesOf([]byte(adminStats))
	want := []Balanced{
		{Name: "192.168.82.22:3306", Service: "192.168.0.22:3306", Weight: 100, Connections: 248, Connected: 248, Received: 41152263, Sent: 7},
		{Name: "192.168.83.24:3306", Service: "192.168.0.22:3306", Weight: 100, Connections: 248, Connected: 248, Received: 41152263},
		{Name: "192.168.83.21:3306", Service: "192.168.0.22:3306", Weight: 100, Connections: 248},
		{Name: "[2620::2]:80", Service: "[2620::1]:80", Weight: 1, Connections: 10},
		{Name: "192.168.50.26:3306", Service: "FWM 10001000", Connected: 1, Received: 40},
	}
	for i := range want {
		want[i].Address = want[i].Name
		if i >= len(b.servers) || b.servers[i] != want[i] {
			t.Errorf("server %d: %+v, want %+v", i, b.servers[i], want[i])
		}
	}
	if b.connected != 23765872 || b.received != 89991519156915 || b.sent != 0 || len(b.servers) != len(want) {
		t.Errorf("%+v", b)
	}
	if err := b.only("192.168.0.22:3306"); err != nil || len(b.servers) != 3 {
		t.Errorf("%v, %d servers", err, len(b.servers))
	}
	if err := b.only("1.2.3.4:5"); err == nil || !strings.Contains(err.Error(), "192.168.0.22:3306") {
		t.Errorf("%v", err)
	}
}

// TestIPVSFiles reads the files at the kernel's paths, with a program instead of ipvsadm that
// prints the same output, and without such a program.
func TestIPVSFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	write("ip_vs", kernelTable, 0o600)
	write("ip_vs_stats", kernelStats, 0o600)
	v := &ipvs{dir: dir, program: write("ipvsadm", "#!/bin/sh\ncat <<'X'\n"+adminStats+"X\n", 0o700)}
	b, err := v.ask(t.Context())
	if err != nil || b.connected != 23765872 || b.servers[0].Received != 41152263 {
		t.Errorf("%v, %+v", err, b)
	}
	v.program = write("fails", "#!/bin/sh\nexit 1\n", 0o700)
	if b, err = v.ask(t.Context()); err != nil || b.servers[0].Connections != 248 || b.servers[0].Received != 0 || v.program != "" {
		t.Errorf("%v, %+v, %q is run again", err, b, v.program)
	}
}

// As node_exporter's end-to-end test has its page (collector/fixtures/e2e-output.txt).
const ipvsMetrics = `# TYPE node_ipvs_backend_connections_active gauge
node_ipvs_backend_connections_active{local_address="",local_mark="10001000",local_port="0",proto="FWM",remote_address="192.168.50.26",remote_port="3306"} 321
node_ipvs_backend_connections_active{local_address="192.168.0.22",local_mark="",local_port="3306",proto="TCP",remote_address="192.168.82.22",remote_port="3306"} 248
# TYPE node_ipvs_backend_weight gauge
node_ipvs_backend_weight{local_address="",local_mark="10001000",local_port="0",proto="FWM",remote_address="192.168.50.26",remote_port="3306"} 20
node_ipvs_backend_weight{local_address="192.168.0.22",local_mark="",local_port="3306",proto="TCP",remote_address="192.168.82.22",remote_port="3306"} 100
# TYPE node_ipvs_connections_total counter
node_ipvs_connections_total 2.3765872e+07
# TYPE node_ipvs_incoming_bytes_total counter
node_ipvs_incoming_bytes_total 8.9991519156915e+13
# TYPE node_ipvs_outgoing_bytes_total counter
node_ipvs_outgoing_bytes_total 0
`

func TestIPVSPage(t *testing.T) {
	asked := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		_, _ = w.Write([]byte(ipvsMetrics))
	}))
	defer s.Close()
	p, err := newBalancer(BalancerConfig{IPVS: s.URL, Service: "192.168.0.22:3306"}, newClock())
	require.NoError(t, err)
	defer p.close()
	if _, err := p.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	sample, err := p.look(t.Context())
	if err != nil || len(sample.Balancer.Servers) != 1 || asked != "/metrics?collect[]=ipvs" {
		t.Fatalf("%v, %+v, asked %s", err, sample, asked)
	}
	want := Balanced{Name: "192.168.82.22:3306", Address: "192.168.82.22:3306", Service: "192.168.0.22:3306", Weight: 100, Connections: 248}
	if got := sample.Balancer.Servers[0]; got != want || sample.Balancer.Connected != 0 {
		t.Errorf("%+v", sample.Balancer)
	}
}

// TestBalancedSince: counters are of the span; if a counter fell, the second is left out, and a new
// server has no past.
func TestBalancedSince(t *testing.T) {
	text := func(rows ...string) *balancing {
		b, err := parseHAProxy([]byte("# pxname,svname,stot,bin,scur,type,weight,slim,\n" + strings.Join(rows, "\n")))
		require.NoError(t, err)
		return b
	}
	first := text("b,a,10,100,1,2,1,,", "b,gone,5,5,0,2,1,,")
	second := text("b,FRONTEND,9,9,9,0,9,9,", `b,a,15,150,2,2,1,7,"a ""b"",c"`, "b,new,1000,1000,3,2,1,,")
	if s := second.since(first, 1); s.Servers[0] != (Balanced{Name: "a", Service: "b", Weight: 1, Connections: 2, Limit: 7, Connected: 5,
		Received: 50}) ||
		s.Servers[1].Connected != 0 || s.Servers[1].Connections != 3 {
		t.Errorf("%+v", s)
	}
	again, then := text("b,a,3,30,0,2,1,,"), text("b,a,4,35,0,2,1,,")
	if s := again.since(second, 1); s != nil {
		t.Errorf("started again: %+v", s)
	}
	if s := then.since(again, 1); s == nil || s.Connected != 1 || s.Servers[0].Received != 5 {
		t.Errorf("the second after that: %+v", s)
	}
}

func FuzzBalancers(f *testing.F) {
	f.Add([]byte(kernelTable))
	f.Add([]byte(kernelStats))
	f.Add([]byte(adminStats))
	f.Add([]byte(ipvsMetrics))
	f.Add([]byte("# pxname,svname,stot,bin,scur,type,weight,slim,\nb,a,3,30,0,2,1,,\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var all []*balancing
		for _, text := range [][]byte{b[:len(b)/2], b} {
			for _, parse := range []func([]byte) (*balancing, error){parseHAProxy, parseIPVS, parseIPVSPage} {
				x, err := parse(text)
				if err != nil {
					x = &balancing{servers: []Balanced{{Name: "192.168.82.22:3306", Service: "192.168.0.22:3306"}}}
				}
				_ = x.totals(text)
				x.bytesOf(text)
				all = append(all, x)
			}
		}
		for i, x := range all {
			s := x.since(all[len(all)-1-i], 1)
			if s == nil {
				continue
			}
			if _, err := json.Marshal(s); err != nil || s.Received < 0 || s.Sent < 0 || s.Connected < 0 {
				t.Fatalf("%v %+v", err, s)
			}
			for _, one := range s.Servers {
				if min(one.Connected, one.Received, one.Sent, one.Errors, int64(one.Connections), int64(one.Weight), int64(one.Limit)) < 0 {
					t.Fatalf("%+v", one)
				}
			}
		}
	})
}
