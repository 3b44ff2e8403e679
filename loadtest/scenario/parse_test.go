package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/document"
	"weir/internal/require"
	"weir/internal/unit"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// drivers returns stand-ins of the real drivers: only their names, schemes and kinds matter here.
func drivers() []storage.Driver {
	all := []storage.Kind{storage.Read, storage.Write, storage.Stat, storage.List, storage.Mkdir, storage.Remove, storage.Checksum,
		storage.Login}
	return []storage.Driver{
		{Name: "webdav", Schemes: []string{"http", "https", "dav", "davs"}, Kinds: all},
		{Name: "local", Schemes: []string{"file"}, Kinds: all},
		{Name: "simulated", Schemes: []string{"simulated"}, Kinds: all},
		{Name: "command", Schemes: []string{"root", "gsiftp", "ftp"}, Kinds: []storage.Kind{storage.Read, storage.Write}},
	}
}

func parse(t *testing.T, text string, sets ...string) *Scenario {
	t.Helper()
	s, err := Parse("s.yaml", []byte(text), nil, sets)
	require.NoError(t, err)
	return s
}

func TestParseEveryKey(t *testing.T) {
	got := parse(t, `
name: all-keys
target: root://localhost:1094//data
client: {command: [xrdcp, -f, "{url}", /dev/null]}
auth: {method: x509, proxy_file: x509up, ca_dir: /etc/certs, insecure: true}
files:
  make: {count: 10, size: {weights: {1MiB: 3, 1GiB: 1}}, keep: true}
workload:
  kind: mix
  mix: {read: 9, write: 1}
  session: fresh
  pick: zipf
  skew: 1.5
  think: {uniform: [1s, 3s]}
  chunk: 8MiB
  in_flight: 4
  part: {size: 64KiB, count: 3, order: sequential}
  size: {uniform: [1kB, 2kB]}
  keep: true
  verify: 50%
  checksum: md5
  timeout: 1m
  retries: 2
load: {rate: [10/s, 600/min], arrivals: poisson, max_clients: 7, ramp: 1s, warmup: 0, duration: 1h, graceful_stop: 5s, error_pause: 250ms, retry_after: ignore}
stop: {time: 1d, count: 5, bytes: 1TB, error_ratio: 0.5}
hosts:
- {name: a, role: server, node_exporter: "http://a:9100/metrics"}
- {role: client, processes: [xrdcp], pids: [1, 2], groups: [3]}
thresholds: ["throughput > 8 Gbit/s at 2000 clients"]
seed: 0xff
`)
	want := &Scenario{
		Name: "all-keys", Target: "root://localhost:1094//data", Client: Command{[]string{"xrdcp", "-f", "{url}", "/dev/null"}},
		Auth:  storage.Auth{Method: "x509", ProxyFile: "x509up", CADir: "/etc/certs", Insecure: true},
		Files: Files{Make: &Make{Count: 10, Size: workload.Dist{Weights: map[string]float64{"1MiB": 3, "1GiB": 1}}, Keep: true}},
		Work: workload.Work{
			Kind: "mix", Mix: map[string]float64{"read": 9, "write": 1}, Session: "fresh", Pick: "zipf", Skew: 1.5,
			Think: workload.Span{Uniform: []unit.Duration{seconds(1), seconds(3)}}, Chunk: 8 << 20, InFlight: 4,
			Part: &workload.Part{Size: 64 << 10, Count: 3, Order: "sequential"}, Size: workload.Dist{Uniform: []unit.Size{1000, 2000}},
			Keep: true, Verify: 0.5, Sum: "md5", Timeout: seconds(60), Retries: 2,
		},
		Load: Load{Rate: Rates{10, 10}, Arrivals: "poisson", MaxClients: 7, Ramp: seconds(1), Duration: seconds(3600),
			GracefulStop: seconds(5), ErrorPause: seconds(0.25), RetryAfter: "ignore"},
		Stop: Stop{Time: unit.Duration(24 * time.Hour), Count: 5, Bytes: 1e12, ErrorRatio: 0.5},
		Hosts: []monitor.Host{{Name: "a", Role: "server", NodeExporter: "http://a:9100/metrics"},
			{Name: "localhost", Role: "client", Processes: []string{"xrdcp"}, Pids: []int{1, 2}, Groups: []int{3}}},
		Thresholds: []string{"throughput > 8 Gbit/s at 2000 clients"}, Seed: 255, Repeat: 1,
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Scenario{})); d != "" {
		t.Error(d)
	}
}

func TestMistakes(t *testing.T) {
	const target = "target: http://localhost/\n"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", `s.yaml:1:1: the scenario is empty; give at least a target, as in target: http://localhost:8080/`},
		{"only a comment", "# later\n", `s.yaml:1:1: the scenario is empty; give at least a target, as in target: http://localhost:8080/`},
		{"no map", "- a\n", `s.yaml:1:1: a list; a scenario is a map of keys, as in target: http://localhost:8080/`},
		{"no yaml", "target: [a\n", `s.yaml:1:9: not YAML; sequence end token ']' not found`},
		{"tab", "load:\n\tduration: 1s\n", `s.yaml:2:1: not YAML; found character '` + "\t" + `' that cannot start any token`},
		{"no target", "name: x\n",
			`s.yaml: target: missing; name the service, as in target: https://localhost:8443/data, or built-in for weir's own server`},
		{"two documents", target + "---\nname: x\n", `s.yaml:3:5: a second document; write one document`},
		{"twice", target + "name: a\nname: b\n", `s.yaml:3:1: key "name" is repeated, first in line 2; keep one`},
		{"merge", target + "load: &l\n  duration: 1s\n  <<: *l\n",
			`s.yaml:4:3: "<<" is not a key; write plain words, without merges, anchors or tags`},
		{"tag", target + "name: !!str x\n", `s.yaml:2:7: "!!str" is not allowed in a scenario; write plain maps, lists and values`},
		{"no anchor", target + "name: *x\n", `s.yaml:2:7: there is no anchor &x before this *x`},
		{"nearest key", target + "workload: {sesion: kept}\n", `s.yaml:2:12: unknown key workload.sesion; did you mean session?`},
		{"far key", target + "load: {speed: 1}\n",
			`s.yaml:2:8: unknown key load.speed; use one of clients, rate, arrivals, max_clients, jobs, ramp, warmup, duration, cooldown, graceful_stop, retry_after, error_pause`},
		{"machines without what starts workers", target + "on: {workers: 2}\n",
			`s.yaml:2:6: on.batch: missing; name what starts the workers, one of local, htcondor, slurm, kubernetes, ssh`},
		{"ssh without machines", target + "on: {batch: ssh}\n",
			`s.yaml:2:6: on.hosts: missing; name the machines to log in to, as in [node1, user@node2]`},
		{"machines of a batch system", target + "on: {batch: slurm, hosts: [a]}\n",
			`s.yaml:2:27: on.hosts: applies to batch: ssh only; slurm chooses its machines itself (see on.submit)`},
		{"an option for a machine", target + "on: {batch: ssh, hosts: [-oProxyCommand=x]}\n",
			`s.yaml:2:25: on.hosts: "-oProxyCommand=x" is not a machine; write it as in node1, or user@node1`},
		{"pods without an image", target + "on: {batch: kubernetes}\n",
			`s.yaml:2:6: on.kubernetes.image: missing; name the image of the workers, as in registry.example.org/weir:1.2.3`},
		{"resources of pods", target + "on: {batch: kubernetes, kubernetes: {image: a, requests: [cpu]}}\n",
			`s.yaml:2:58: on.kubernetes.requests: "cpu": write it as in cpu=4`},
		{"taints", target + "on: {batch: kubernetes, kubernetes: {image: a, tolerations: ['a:Never']}}\n",
			`s.yaml:2:61: on.kubernetes.tolerations: "a:Never": write it as in dedicated=load:NoSchedule`},
		{"pods of another system", target + "on: {batch: slurm, kubernetes: {image: a}}\n",
			`s.yaml:2:33: on.kubernetes: applies to batch: kubernetes only`},
		{"address", target + "on: {batch: local, address: a/b}\n",
			`s.yaml:2:29: on.address: "a/b"; write the name or address of this machine, with a port or without, as in login1.example.org:9999`},
		{"jobs and workers", target + "on: {batch: htcondor, workers: 2, job_per_client: true}\n",
			`s.yaml:2:32: on.workers: cannot be combined with job_per_client; omit it`},
		{"fewer workers than sites",
			target + "link: {a: {rtt: 1ms}, b: {rtt: 2ms, trunk: c}, c: {rate: 1Gbit/s}}\non: {batch: slurm, workers: 1}\n",
			`s.yaml:3:29: on.workers: 1: each worker is at one site; use at least 2, one for each link`},
		{"data connections of a program", "target: gsiftp://a/\nclient: gfal-copy\nlink: {rtt: 1ms}\non: {batch: slurm}\n",
			`s.yaml:2:9: client.command: with on and link: the data connections that GridFTP servers name to a program would go past the link`},
		{"no doors", "target: []\n", `s.yaml:1:9: target: missing; name the service`},
		{"door without URL", "target: [http://a/, b]\n", `s.yaml:1:21: target.1: "b" has no scheme`},
		{"doors alike", "target: [http://a/, http://b/, http://a/]\n", `s.yaml:1:32: target.2: "http://a/" is there twice`},
		{"doors of two protocols", "target: [http://a/, root://b/]\n", `s.yaml:1:21: target.1: is root:// and the first is http://`},
		{"door in a list", "target: [http://a/, [http://b/]]\n", `s.yaml:1:21: target.1: a list; write one value`},
		{"built-in door", "target: [http://a/, built-in]\n",
			`s.yaml:1:21: target.1: "built-in" is not a URL; write the URL of each of the equal servers, as in [https://dav-1:2880/data, https://dav-2:2880/data]`},
		{"door with a secret", "target: [http://a/, 'http://u:p@b/']\n", `s.yaml:1:21: target.1: a scenario must not contain secrets`},
		{"two balancers", target + "balancer: {haproxy: /a, ipvs: local}\n", `s.yaml:2:31: balancer.ipvs: haproxy and ipvs exclude each other`},
		{"silent balancer", target + "balancer: {service: x}\n",
			`s.yaml:2:12: balancer: haproxy and ipvs are missing; name one of them, or omit balancer`},
		{"no socket", target + "balancer: {haproxy: a.sock}\n",
			`s.yaml:2:21: balancer.haproxy: "a.sock" is neither a socket nor a URL; write it as in /run/haproxy/admin.sock, lb:9999, or http://lb:8404/stats`},
		{"no page", target + "balancer: {ipvs: yes}\n",
			`s.yaml:2:18: balancer.ipvs: not the URL of a page; write it as in http://lvs:9100/metrics`},
		{"virtual service", target + "balancer: {ipvs: local, service: a b}\n",
			`s.yaml:2:34: balancer.service: "a b"; write the virtual service as ADDRESS:PORT`},
		{"backend without name", target + "hosts: [{address: [a]}]\n", `s.yaml:2:10: hosts.0.name: missing`},
		{"backend of clients", target + "hosts: [{name: a, role: client, address: [a]}]\n",
			`s.yaml:2:25: hosts.0.role: a backend (address, interface, transfer_log) is a server`},
		{"bad address", target + "hosts: [{name: a, address: ['a b']}]\n", `s.yaml:2:29: hosts.0.address.0: "a b"; write a name or an address`},
		{"two of one address", target + "hosts: [{name: a, address: ['192.0.2.1']}, {name: b, address: ['192.0.2.1:2811']}]\n",
			`s.yaml:2:64: hosts.1.address.0: "192.0.2.1:2811" is also an address of a`},
		{"interface", target + "hosts: [{name: a, interface: /dev/eth0}]\n",
			`s.yaml:2:30: hosts.0.interface: "/dev/eth0" is not an interface; write its name, as in eth0`},
		{"other kind", target + "workload: {kind: erase}\n", `s.yaml:2:18: workload.kind: unknown kind "erase"; use one of read, write, copy, mix`},
		{"session", target + "workload: {session: shard}\n", `s.yaml:2:21: workload.session: unknown session "shard"; did you mean shared?`},
		{"shared session", target + "workload: {session: shared}\n",
			`s.yaml:2:21: workload.session: clients of http:// cannot share a session, only those of root:// and roots:// can; use kept or fresh`},
		{"shared files", "target: file:///data\nworkload: {session: shared}\n",
			`s.yaml:2:21: workload.session: clients of file:// cannot share a session, only those of root:// and roots:// can; use kept or fresh`},
		{"shared programs", "target: root://a/\nclient: xrdcp\nworkload: {session: shared}\n",
			`s.yaml:3:21: workload.session: external programs cannot share a session; use kept or fresh, or omit client`},
		{"shared logins", "target: root://a/\nworkload: {kind: login, session: shared}\n",
			`s.yaml:2:34: workload.session: each operation of kind login is a session of its own; use fresh`},
		{"resumption", "target: https://a/\nworkload: {tls_resumption: clients}\n",
			`s.yaml:2:28: workload.tls_resumption: unknown tls_resumption "clients"; did you mean client?`},
		{"resumption without TLS", target + "workload: {tls_resumption: client}\n", "s.yaml:2:28: workload.tls_resumption: TLS sessions are " +
			"resumed with https://, davs://, roots:// and root://; omit tls_resumption"},
		{"resumption of programs", "target: https://a/\nclient: curl\nworkload: {tls_resumption: shared}\n",
			`s.yaml:3:28: workload.tls_resumption: an external program handles its own TLS sessions; omit tls_resumption or client`},
		{"plain programs", "target: root://a/\nclient: xrdcp\nworkload: {plain: true}\n",
			`s.yaml:3:19: workload.plain: an external program reads and writes in its own way; omit plain or client`},
		{"open programs", "target: root://a/\nclient: xrdcp\nworkload: {keep_open: true}\n",
			`s.yaml:3:23: workload.keep_open: an external program closes its files when it ends; omit keep_open or client`},
		{"crowded session", "target: root://a/\nworkload: {in_flight: 300}\n",
			`s.yaml:2:23: workload.in_flight: 300 is out of range; use up to 256 for root://, 63 if the session is shared`},
		{"plain stats", target + "workload: {kind: metadata, plain: true}\n",
			`s.yaml:2:35: workload.plain: kind metadata moves no payload; omit plain`},
		{"open and fresh", "target: root://a/\nworkload: {keep_open: true, session: fresh}\n",
			`s.yaml:2:23: workload.keep_open: files stay open only as long as the session; use session: kept, or omit keep_open`},
		{"two kerberos", target + "auth: {method: krb5, user: a@B, keytab_file: k, ticket_file: t}\n",
			`s.yaml:2:62: auth.ticket_file: keytab_file and ticket_file exclude each other; keep one`},
		{"whose keytab", target + "auth: {method: krb5, keytab_file: k}\n",
			`s.yaml:2:35: auth.keytab_file: needs user; give the principal whose keys it holds, such as user: weir@EXAMPLE.ORG`},
		{"keytab of a program", target + "client: curl\nauth: {method: krb5, user: a, keytab_file: k}\n",
			`s.yaml:3:44: auth.keytab_file: an external program needs a ticket; fetch one with kinit -k -t, and name its cache with ticket_file`},
		{"no kerberos", target + "auth: {method: unix, ticket_file: t}\n",
			`s.yaml:2:16: auth.method: keytab_file, ticket_file and krb5_file need method: krb5; use it, or omit them`},
		{"kind", target + "workload: {kind: raed, part: {size: 1B}}\n", `s.yaml:2:18: workload.kind: unknown kind "raed"; did you mean read?`},
		{"unit", target + "load: {duration: 10}\n",
			`s.yaml:2:18: load.duration: "10" has no unit; write a duration as in 1.5s, 250ms, 60m or 2d`},
		{"no value", target + "load:\n  duration:\n", `s.yaml:3:13: load.duration has no value; give it one, or omit the key`},
		{"map for value", target + "load: {duration: {a: 1}}\n", `s.yaml:2:19: load.duration: a map; write one value`},
		{"value for map", target + "load: 5\n", `s.yaml:2:7: load: "5"; write a map with keys such as clients, rate, arrivals`},
		{"value for list", target + "hosts: a\n", `s.yaml:2:8: hosts: "a"; write a list, as in [a, b]`},
		{"bool", target + "files: {listing: yes}\n", `s.yaml:2:18: files.listing: "yes"; write true or false`},
		{"hold", target + "load: {duration: 0s}\n", `s.yaml:2:18: load.duration: must be above 0: it is the time that counts`},
		{"clients", target + "load: {clients: [1, 0, x, -2]}\n", `s.yaml:2:21: load.clients.1: "0"; a step has at least one client` + "\n" +
			`s.yaml:2:24: load.clients.2: "x"; write a whole number` + "\n" + `s.yaml:2:27: load.clients.3: "-2": cannot be negative`},
		{"many clients", target + "load: {clients: 99999999999999999999}\n", `s.yaml:2:17: load.clients: "99999999999999999999": too large`},
		{"columns are characters", "target: http://localhost/äöü\nname: \"äöü\"\nworkload: {checksum: äöü, sesion: x}\n",
			"s.yaml:2:7: name: \"äöü\" is not a name; use up to 64 letters, digits, dots, _ and -\ns.yaml:3:22: workload.checksum: " +
				"unknown checksum \"äöü\"; use one of adler32, crc32c, md5, sha256\ns.yaml:3:27: unknown key workload.sesion"},
		{"windows", "target: http://localhost/\r\nload:\r\n  duration: 5\r\n",
			`s.yaml:3:13: load.duration: "5" has no unit; write a duration as in 1.5s, 250ms, 60m or 2d`},
		{"no brackets", target + "load: {clients: 1,2}\n", `s.yaml:2:19: unknown key load.2; several values need brackets, as in [1, 2, 4]`},
		{"by", target + "load: {clients: {from: 1, to: 10, by: x1}}\n", `s.yaml:2:39: load.clients.by: "x1"; write a factor above 1, as in x2`},
		{"endless", target + "load: {clients: {from: 1, to: 10, by: x1.1}}\n",
			`s.yaml:2:39: load.clients.by: "x1.1" makes more than 1000 steps, or repeats one; use another step`},
		{"both loads", target + "load: {clients: 1, rate: 1/s}\n",
			`s.yaml:2:26: load.rate: clients (closed load) and rate (open load) exclude each other; keep one, and limit the clients of an open load with max_clients`},
		{"arrivals", target + "load: {arrivals: poisson}\n",
			`s.yaml:2:18: load.arrivals: applies to open load only; give load.rate as well, or omit it`},
		{"uniform", target + "workload: {think: {uniform: [3s, 1s]}}\n",
			`s.yaml:2:29: workload.think.uniform: the first value is larger; write the lower value first`},
		{"two ways", target + "workload: {think: {uniform: [1s, 2s], exponential: 1s}}\n",
			`s.yaml:2:20: workload.think: write one value, or a map with one of uniform, exponential`},
		{"weights", target + "workload: {kind: write, size: {weights: {1: 3}}}\n",
			`s.yaml:2:42: workload.size.weights: "1" has no unit; write a size as in 1MiB, 300kB or 20B`},
		{"no bytes", target + "workload: {kind: write, size: 0B}\n", `s.yaml:2:31: workload.size: "0B"; a file has at least one byte`},
		{"size of read", target + "workload: {size: 1MiB}\n",
			`s.yaml:2:18: workload.size: applies to kinds that write, and kind read does not; the sizes of files to read follow from files`},
		{"verify", target + "workload: {verify: 200%}\n", `s.yaml:2:20: workload.verify: "200%" is more than 100%`},
		{"no mix", target + "workload: {kind: mix}\n", `s.yaml:2:12: workload.mix: missing; kind mix needs weights, such as {read: 9, write: 1}`},
		{"mix", target + "workload: {kind: mix, mix: {reed: 1}}\n",
			`s.yaml:2:35: workload.mix.reed: kind mix cannot weigh "reed"; use read, write, stat, list, mkdir, remove, checksum, login, move, locate, ping`},
		{"no weight", target + "workload: {kind: mix, mix: {read: NaN}}\n", `s.yaml:2:35: workload.mix.read: "NaN"; write a number`},
		{"files", target + "files: {listing: true, list: a.txt}\n", `s.yaml:2:9: files: list, listing and make exclude each other; keep one`},
		{"files of write", target + "workload: {kind: write}\nfiles: {listing: true}\n",
			`s.yaml:3:9: files: workload.kind write reads no files; omit files`},
		{"pattern", target + "files: {include: ['[a']}\n",
			`s.yaml:2:19: files.include.0: "[a" is not a pattern; use one such as *.root or 2024/**/*.root`},
		{"no pattern", target + "files: {exclude: ['/']}\n", `s.yaml:2:19: files.exclude.0: "/" is not a pattern; use one such as`},
		{"patterns of made files", target + "files: {make: {count: 1}, include: ['*']}\n",
			`s.yaml:2:36: files.include: applies to files.list and files.listing only; omit it`},
		{"sample of made files", target + "files: {make: {count: 1}, sample: 3}\n",
			`s.yaml:2:35: files.sample: applies to files.list and files.listing only; omit it, or make fewer files`},
		{"sample", target + "files: {sample: -1}\n", `s.yaml:2:17: files.sample: "-1": cannot be negative`},
		{"patterns of write", target + "workload: {kind: write}\nfiles: {include: ['*']}\n",
			`s.yaml:3:18: files.include: applies to workloads that read files; omit it`},
		{"count", target + "files: {make: {size: 1B}}\n", `s.yaml:2:16: files.make.count: 0 is out of range; make 1 to 10000000 files`},
		{"role", target + "hosts: [{name: a, role: sever}]\n", `s.yaml:2:25: hosts.0.role: unknown role "sever"; did you mean server?`},
		{"no role", target + "hosts: [{name: a}]\n", `s.yaml:2:10: hosts.0.role: unknown role ""; use one of client, server, both, other`},
		{"report", target + "hosts: [{name: a, role: server, xrootd_report: a:9931}]\n",
			`s.yaml:2:48: hosts.0.xrootd_report: "a:9931" is not a port of this machine; write it as in :9931, or 192.0.2.1:9931`},
		{"exporter", target + "hosts: [{name: a, role: server, node_exporter: a:9100}]\n",
			`s.yaml:2:48: hosts.0.node_exporter: not the URL of a page; write it as in http://a:9100/metrics`},
		{"threshold", target + "thresholds: [throughput > 8]\n",
			`s.yaml:2:14: thresholds.0: "8" has no unit; write a speed as in 100Mbit/s, 1Gbit/s or 12MB/s`},
		{"boundary", target + "boundaries: [latency_mean < 10 single]\n",
			`s.yaml:2:14: boundaries.0: "10 single"; write a multiple of the lightest step's value, as in 10 x single`},
		{"measure", target + "thresholds: [thruput > 8Gbit/s]\n",
			`s.yaml:2:14: thresholds.0: unknown measure "thruput"; use one of throughput, per_client, rate, per_client_rate, error_ratio,`},
		{"method", target + "auth: {method: kerberos}\n",
			`s.yaml:2:16: auth.method: unknown method "kerberos"; use one of none, unix, krb5, x509, token, basic, s3`},
		{"basic", target + "auth: {method: basic, user: ada}\n",
			`s.yaml:2:16: auth.method: basic needs user, and password_file or password_variable`},
		{"client", target + "client: xrdcp -f\n", `s.yaml:2:9: client: "xrdcp -f" is more than a name; write {command: [xrdcp, -f]}`},
		{"program", target + "client: xrdpc\n",
			`s.yaml:2:9: client: unknown program "xrdpc"; did you mean xrdcp? A program of your own is written with its arguments, as in {command: [xrdpc, "{url}"]}`},
		{"simulated", "target: simulated://?servers=4\n",
			`s.yaml:1:9: target: "simulated://?servers=4" has no name; write it as in simulated://demo?servers=4&service=10ms`},
		{"no command", target + "client: {}\n",
			`s.yaml:2:9: client: missing; name the program and its arguments, as in {command: [xrdcp, -f, "{url}", /dev/null]}`},
		{"name", target + "name: ../x\n", `s.yaml:2:7: name: "../x" is not a name; use up to 64 letters, digits, dots, _ and -`},
		{"scheme", "target: localhost\n",
			`s.yaml:1:9: target: "localhost" has no scheme; write it with its protocol, as in https://localhost:8443/data`},
		{"host", "target: http:///x\n", `s.yaml:1:9: target: "http:///x" has no host; write it as in http://localhost:8443/data`},
		{"seed", target + "seed: -1\n", `s.yaml:2:7: seed: "-1"; write a whole number from 0 to 18446744073709551615`},
		{"event", target + "workload: {kind: job, job: {event_size: 4KiB, page: 8KiB}}\n",
			`s.yaml:2:53: workload.job.page: 8KiB is more than an event; use 4KiB or less, or job.read_ahead to request several events at once`},
		{"job", target + "workload: {job: {events: 10}}\n", `s.yaml:2:18: workload.job: applies to kind job only; omit it for kind read`},
		{"job key", target + "workload: {kind: job, job: {event: 10}}\n", `s.yaml:2:29: unknown key workload.job.event; did you mean events?`},
		{"burnt", target + "workload: {kind: job, job: {burn: true}}\n",
			`s.yaml:2:35: workload.job.burn: there is nothing to compute; give job.compute as well`},
		{"scratch", target + "workload: {kind: job, job: {scratch: /tmp}}\n",
			`s.yaml:2:38: workload.job.scratch: applies to access: staged only; omit it`},
		{"program of a job", target + "client: curl\nworkload: {kind: job}\n",
			`s.yaml:3:18: workload.kind: jobs of kind job are done by weir's own clients; omit client, use access: staged to have the program copy files, or use command-job for your own program`},
		{"no program", target + "workload: {kind: command-job}\n",
			`s.yaml:2:18: workload.kind: a command-job needs a program; name it, as in client: {command: [python3, analysis.py, "{url}"]}`},
		{"copying program", target + "client: curl\nworkload: {kind: command-job}\n",
			`s.yaml:2:9: client: curl reads or writes files; name the program that does a job`},
		{"jobs at a rate", target + "workload: {kind: job}\nload: {rate: 1/s, jobs: 2}\n",
			`s.yaml:3:25: load.jobs: is for closed load (load.clients)`},
		{"no jobs", target + "load: {jobs: -2}\n", `s.yaml:2:14: load.jobs: "-2": cannot be negative`},
		{"small files", target + "workload: {kind: job}\nfiles: {make: {count: 3, size: 1MiB}}\n",
			`s.yaml:3:32: files.make.size: 1MiB is too small for a job of 3000 events of 40KiB; make files of 122.88MB or more, or omit size`},
		{"long", target + "load: {duration: 300d, clients: [1, 2]}\n", `s.yaml:2:18: load.duration: 2 steps of 300d5s are longer than a year`},
	} {
		_, err := Parse("s.yaml", []byte(c.text), nil, nil)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestMistakesAreListedInOrderAndCounted(t *testing.T) {
	text := "target: http://localhost/\n" + strings.Repeat("x: 1\n", 1)
	for i := range 30 {
		text += "k" + string(rune('a'+i%26)) + strings.Repeat("q", 5+i) + ": 1\n"
	}
	_, err := Parse("s.yaml", []byte(text), nil, nil)
	var ms document.Mistakes
	if !errors.As(err, &ms) || len(ms) != 31 {
		t.Fatalf("%d mistakes: %v", len(ms), err)
	}
	for i, m := range ms {
		if m.Line != i+2 {
			t.Errorf("mistake %d stands in line %d", i, m.Line)
		}
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 21 || lines[20] != "... and 11 more mistakes" {
		t.Errorf("%d lines, the last: %s", len(lines), lines[len(lines)-1])
	}
	var one *document.Mistake
	if !errors.As(err, &one) || one.Line != 2 {
		t.Errorf("a single mistake cannot be taken out: %v", one)
	}
}

func TestSecretsAreRefusedAndNotRepeated(t *testing.T) {
	for _, text := range []string{
		"target: http://localhost/\nauth: {method: basic, user: ada, password: hunter2}\n",
		"target: http://localhost/\nauth: {method: token, Token: hunter2}\n",
		"target: http://localhost/\npassword: hunter2\n",
		"target: http://ada:hunter2@localhost/\n",
		"target: http://localhost/?authz=hunter2\n",
		"variables: {PASSWORD: hunter2}\ntarget: http://localhost/\n",
		"variables: {DAV_TOKEN: hunter2}\ntarget: http://localhost/\n",
		"target: http://localhost/${MY_SECRET:-hunter2}\n",
		"target: http://localhost/\nclient: {command: [curl, -H, \"Authorization: Bearer hunter2\", \"{url}\"]}\n",
		"target: http://localhost/\nclient: {command: [x, --password=hunter2, \"{url}\"]}\n",
		"target: http://localhost/\nclient: {command: [x, \"http://ada:hunter2@localhost/\"]}\n",
		"target: \"http://ada:hunter2@local host/\"\n",
		"target: http://localhost/\nhosts: [{name: a, role: server, node_exporter: \"http://u:hunter2@a:9100/\"}]\n",
	} {
		_, err := Parse("s.yaml", []byte(text), nil, nil)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s\n%v", text, err)
		}
		if !strings.Contains(err.Error(), "a scenario must not contain secrets") && !strings.Contains(err.Error(), "not a URL") {
			t.Errorf("%s\n%v", text, err)
		}
	}
	_, err := Parse("s.yaml", []byte("target: http://localhost/\n"), nil, []string{"auth.password=hunter2"})
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.HasPrefix(err.Error(), "--set auth.password: a scenario must not") {
		t.Error(err)
	}
}

func TestVariables(t *testing.T) {
	t.Setenv("WEIR_TEST_HOST", "from-environment")
	t.Setenv("WEIR_TEST_HIDDEN", "hunter2")
	const text = `
variables: {WEIR_TEST_HOST: null, PORT: 80, N: "1,2"}
target: http://${WEIR_TEST_HOST}:${PORT}/${DIR:-data}/$${x}
load: {clients: "${N}"}
`
	s := parse(t, text)
	if s.Target != "http://from-environment:80/data/${x}" || len(s.Load.Clients) != 2 {
		t.Errorf("target %s, clients %v", s.Target, s.Load.Clients)
	}
	s, err := Parse("s.yaml", []byte(text), map[string]string{"WEIR_TEST_HOST": "given", "PORT": "81", "DIR": "d", "N": "7"}, nil)
	if err != nil || s.Target != "http://given:81/d/${x}" || s.Load.Clients[0] != 7 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, c := range []struct {
		text string
		vars map[string]string
		want string
	}{
		{"target: http://${WEIR_TEST_HIDDEN}/", nil,
			`s.yaml:1:9: there is no variable WEIR_TEST_HIDDEN; list it under variables, or write ${WEIR_TEST_HIDDEN:-default}`},
		{"variables: {SIZE: 1B}\ntarget: http://${SIZ}/", nil, `s.yaml:2:9: there is no variable SIZ; did you mean SIZE?`},
		{"variables: {WEIR_TEST_UNSET: null}\ntarget: http://${WEIR_TEST_UNSET}/", nil,
			`s.yaml:2:9: variable WEIR_TEST_UNSET has no value; give --var WEIR_TEST_UNSET=..., or set it in the environment`},
		{"target: http://a/\n", map[string]string{"X": "1"}, `--var X: the scenario has no such variable; it has none`},
		{"variables: {XY: 1}\ntarget: http://a/\n", map[string]string{"XZ": "1"}, `--var XZ: the scenario has no such variable`},
		{"target: http://${A/", nil, `s.yaml:1:9: "http://${A/": the variable is not closed by }`},
		{"target: http://${a-b}/", nil, `s.yaml:1:9: "${a-b}" is not a variable; write ${NAME} or ${NAME:-default}`},
		{"variables: {A: [1]}\ntarget: http://a/", nil, `s.yaml:1:16: variables.A: a list; write one value`},
		{"variables: {A: \"${A}\"}\ntarget: http://a/", nil, `s.yaml:1:16: variables.A: "${A}"; a variable cannot refer to others`},
		{"variables: 5\ntarget: http://a/", nil, `s.yaml:1:12: variables: "5"; write names and values, as in {SIZE: 1MiB}`},
	} {
		_, err := Parse("s.yaml", []byte(c.text), c.vars, nil)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestSet(t *testing.T) {
	const text = "target: http://a/\nworkload: {think: 1s}\nhosts: [{name: a, role: server}]\nload: {clients: [1]}\n"
	s := parse(t, text, "workload.session=fresh", "workload.think.exponential=2s", "hosts.0.name=b", "load.clients=4,8",
		"files.make={count: 3, size: 1B}", "load.ramp=0")
	if s.Work.Session != "fresh" || s.Work.Think.Exponential != seconds(2) || s.Work.Think.Fixed != 0 || s.Hosts[0].Name != "b" ||
		!cmp.Equal(s.Load.Clients, Counts{4, 8}) || s.Files.Make.Count != 3 || s.Load.Ramp != 0 {
		t.Errorf("%+v", s)
	}
	if s := parse(t, text, "load.clients=null", "load.rate=5/s"); len(s.Load.Clients) != 0 || s.Load.Rate[0] != 5 {
		t.Errorf("%+v", s.Load)
	}
	for set, want := range map[string]string{
		"workload.sesion=fresh":   "--set workload.sesion: unknown key workload.sesion; did you mean session?",
		"workload.session=krempt": `--set workload.session: unknown session "krempt"; did you mean kept?`,
		"load.duration=5":         `--set load.duration: "5" has no unit; write a duration as in 1.5s, 250ms, 60m or 2d`,
		"load.duration=[":         "--set load.duration: not YAML; sequence end token ']' not found",
		"load.duration":           "--set load.duration: write a key and its value, as in --set workload.session=fresh",
		"=5":                      "--set ...: write a key and its value, as in --set workload.session=fresh",
		"load..hold=5":            "--set load..hold: write a key and its value, as in --set workload.session=fresh",
		"hosts.7.name=x":          `--set hosts.7.name: hosts: there is no item "7"`,
		"hosts.7=x":               "--set hosts.7: there is no item 7: the list has 1",
		"load.duration=0s":        "--set load.duration: must be above 0: it is the time that counts",
	} {
		_, err := Parse("s.yaml", []byte(text), nil, []string{set})
		if err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", set, err, want)
		}
	}
}

func TestSteps(t *testing.T) {
	for text, want := range map[string]Counts{
		"10": {10}, "1,2,4": {1, 2, 4}, `"3, 1"`: {3, 1}, "[4, 2]": {4, 2}, "{from: 1, to: 20, by: x2}": {1, 2, 4, 8, 16},
		"{from: 16, to: 3, by: x2}":   {16, 8, 4},
		"{from: 10, to: 30, by: +10}": {10, 20, 30}, "{from: 10, to: 30, by: 15}": {10, 25}, "{from: 30, to: 10, by: 10}": {30, 20, 10},
		"{from: 5, to: 5, by: x2}": {5},
		"1..100":                   {1, 2, 4, 8, 16, 32, 64, 100}, "3..24": {3, 6, 12, 24}, "7..7": {7}, "100..10": {100, 50, 25, 12, 10},
		"1..4,2..1": {1, 2, 4, 2, 1}, "[1..4, 10]": {1, 2, 4, 10}, "1..1": {1},
	} {
		if got := parse(t, "target: http://a/\nload:\n  clients: "+text+"\n").Load.Clients; !cmp.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]Rates{
		"10/s": {10}, `"10/s, 60/min"`: {10, 1}, "{from: 10/s, to: 40/s, by: x2}": {10, 20, 40},
		"{from: 10/s, to: 30/s, by: +10/s}": {10, 20, 30}, "10/s..50/s": {10, 20, 40, 50},
	} {
		if got := parse(t, "target: http://a/\nload:\n  rate: "+text+"\n").Load.Rate; !cmp.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

func TestHostileYAML(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 8 {
		from, to := string(rune('a'+i)), string(rune('b'+i))
		bomb += to + ": &" + to + " [" + strings.TrimSuffix(strings.Repeat("*"+from+",", 10), ",") + "]\n"
	}
	for name, text := range map[string]string{
		"aliases": bomb, "lists": strings.Repeat("[", 100_000), "maps": "a: " + strings.Repeat("{a: ", 100_000),
		"dashes":    strings.Repeat("- ", 100_000),
		"questions": strings.Repeat("? ", 100_000), "large": strings.Repeat("a: 1\n", 1<<20), "zeros": strings.Repeat("\x00", 10_000),
		"anchors": "a: " + strings.Repeat("&a ", 10_000) + "x", "tags": "a: " + strings.Repeat("!t ", 10_000) + "x",
		"colons": strings.Repeat("a: ", 10_000),
	} {
		if _, err := Parse("s.yaml", []byte(text), nil, nil); err == nil {
			t.Errorf("%s is accepted", name)
		} else if len(err.Error()) > 4000 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.yaml")
	require.NoError(t, os.WriteFile(path, []byte("target: http://a/\nfiles: {list: l.txt}\n"), 0o600))
	s, err := Read(path, nil, nil)
	if err != nil || s.Files.List != filepath.Join(dir, "l.txt") {
		t.Errorf("%v, %v", s, err)
	}
	if s, err := Read(path, nil, []string{"files.list=here.txt", "auth.ca_file=ca.pem"}); err != nil || s.Files.List != "here.txt" ||
		s.Auth.CAFile != "ca.pem" {
		t.Errorf("%v, %v", s, err)
	}
	if s, err := Parse("d/s.yaml", []byte("target: http://a/\nfiles: {list: \"${L:-a}\"}\n"), map[string]string{"L": "b"}, nil); err != nil ||
		s.Files.List != "b" {
		t.Errorf("%v, %v", s, err)
	}
	if _, err := s.Plan(drivers()); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a list that is not there: %v", err)
	}
	if _, err := Read(filepath.Join(dir, "none.yaml"), nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"target: built-in\n", "a: &a [*a]\n", "target: http://${X:-a}/\nload: {clients: {from: 1, to: 9, by: x2}}\n", "{",
		"workload: {think: {uniform: [1s, 2s]}}",
		"target: http://a/\nfiles: {make: {count: 1, size: {weights: {1B: 1}}}}\nhosts: [{role: both}]\n",
		"matrix: {p: [{name: a, target: file:///a}, {name: b, target: http://a/}], workload.session: [kept, fresh]}\nrepeat: 2\n",
	} {
		f.Add(text, "load.duration=1s")
	}
	f.Fuzz(func(t *testing.T, text, set string) {
		s, err := Parse("", []byte(text), nil, []string{set})
		if err != nil {
			return
		}
		for _, v := range s.Variants() {
			fuzzPlan(t, v.Scenario)
		}
	})
}

func fuzzPlan(t *testing.T, s *Scenario) {
	s.Files.List = ""
	p, err := s.Plan(drivers())
	if err != nil {
		return
	}
	var b strings.Builder
	require.NoError(t, p.WriteJSON(&b))
	back, err := parsePlan([]byte(b.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, &b)
	}
	if d := cmp.Diff(p, back, cmpopts.EquateEmpty()); d != "" {
		t.Fatal(d)
	}
	require.NoError(t, p.WriteText(&b))
}
