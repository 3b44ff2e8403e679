package rigs

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weir/lab"
)

// diagnoseSetupRigs returns the rigs whose time passes before the payload.
func diagnoseSetupRigs() []diagnoseRig {
	return []diagnoseRig{
		{
			name: "slow-dns", situation: "The name server answers after 1.5 s.", cause: "name lookup", line: campus(),
			play: func(w *world) { w.reads(1, 1, 1); w.slowNames(1500 * time.Millisecond) },
		}, {
			name: "slow-connect", needs: []string{"iptables"}, situation: "The first SYN of each connection is lost, as by a full " +
				"listen queue.",
			cause: "connect", line: campus(), play: lostSyns,
		}, {
			name: "slow-tls", needs: []string{"nginx", "openssl"}, situation: "nginx with an RSA key of 4096 bits and 1% of a core; " +
				"64 KiB.",
			cause: "tls", line: campus(), play: func(w *world) { w.slowTLS() },
		}, {
			name: "login-queue", needs: []string{"xrootd", "xrdcp"}, situation: "Logins at XRootD wait 2 s in a queue; 1 MiB.",
			cause: "login",
			line:  campus(), play: func(w *world) { w.loginQueue(2*time.Second, "f2") },
		}, {
			name: "redirector", situation: "A redirector answers after 300 ms and refers to a server; 1 MiB.", cause: "redirector",
			line: campus(),
			play: func(w *world) { w.redirected(300 * time.Millisecond) },
		}, {
			name: "checksum", situation: "The server computes a checksum of the file, at 10 MB/s, before the first byte of each GET.",
			cause: "checksum", line: campus(), play: func(w *world) { w.summed(10e6) },
		},
	}
}

// slowNames has the target's name looked up slowly.
func (w *world) slowNames(delay time.Duration) {
	w.resolver(delay)
	w.target = w.named(w.target)
	f := w.curl(w.target)
	w.holds(f.lookup > 0.8*delay.Seconds() && f.lookup > 0.5*f.total, "a slow lookup expected: %.2f of %.2f s", f.lookup, f.total)
}

func lostSyns(w *world) {
	w.reads(1, 1, 1)
	w.firewall("iptables", "-A", "INPUT", "-i", "weir+", "-p", "tcp", "--syn", "-m", "statistic", "--mode", "nth", "--every", "2",
		"--packet",
		"0", "-j", "DROP")
	f := w.curl(w.target)
	w.holds(f.connect > 0.9 && f.connect > 0.7*f.total, "a slow connect expected: %.2f of %.2f s", f.connect, f.total)
}

// slowTLS starts nginx with a large key and little CPU time.
func (w *world) slowTLS() {
	wrap, _ := w.cpuGroup("tls", 0.01)
	key, cert := w.certificate("rsa", "rsa_keygen_bits:4096")
	front, _ := w.configured(3, 64<<10, func(dir, port string) ([]string, string) {
		conf := nginxHead(dir) + "server { listen 127.0.0.1:" + port + " ssl; ssl_certificate " + cert +
			"; ssl_certificate_key " + key + "; ssl_session_cache off; ssl_session_tickets off; root " + dir + "/root; }\n}\n"
		return append(append([]string{}, wrap...), "nginx", "-p", dir, "-e", "stderr", "-c", dir+"/conf"), conf
	})
	w.target = strings.Replace(w.url(front.url), "http:", "https:", 1) + "/f0"
	w.flags = []string{"--set", "auth.insecure=true"}
	f := w.curl(w.target)
	w.holds(f.tls-f.connect > 0.15 && f.tls-f.connect > 0.6*f.total, "a slow handshake expected: %.2f of %.2f s", f.tls-f.connect, f.total)
}

// nginxHead is the configuration of nginx before its servers.
func nginxHead(dir string) string {
	return "daemon off;\npid " + dir + "/pid;\nerror_log stderr;\nworker_processes 1;\nuser root;\nevents {}\nhttp {\naccess_log off;\n" +
		"client_body_temp_path " + dir + "/1; proxy_temp_path " + dir + "/2; fastcgi_temp_path " + dir + "/3; uwsgi_temp_path " + dir +
		"/4; scgi_temp_path " + dir + "/5;\n"
}

// certificate makes a key of a kind and a certificate of its own.
func (w *world) certificate(kind, option string) (key, cert string) {
	key, cert = filepath.Join(w.dir, "key"), filepath.Join(w.dir, "cert")
	_, err := w.command("openssl", "req", "-x509", "-newkey", kind, "-pkeyopt", option, "-nodes", "-keyout", key, "-out", cert,
		"-days", "2",
		"-subj", "/CN="+rigName, "-addext", "subjectAltName=DNS:"+rigName)
	w.must(err)
	return key, cert
}

// loginQueue passes connections to XRootD on, whose logins wait for one another.
func (w *world) loginQueue(each time.Duration, file string) {
	sys := w.startXRootD(lab.XRootDConfig{})
	var queue sync.Mutex
	address := w.between(strings.TrimPrefix(strings.TrimSuffix(sys.URL, "//data"), "root://"), func(to net.Conn, from io.Reader) error {
		return passRequests(to, from, func(id uint16) {
			if id == kXRLogin {
				queue.Lock()
				defer queue.Unlock()
				time.Sleep(each)
			}
		})
	})
	w.target = w.url("root://"+address) + "//data/" + file
	w.holds(w.xrdcp(w.target) > each.Seconds(), "a slow login expected")
}

// kXRLogin is the number of the login request of XRootD's protocol.
const kXRLogin = 3007

// passRequests passes the handshake of XRootD's protocol and the requests on, and calls before with
// the number of each request.
func passRequests(to net.Conn, from io.Reader, before func(id uint16)) error {
	if _, err := io.CopyN(to, from, 20); err != nil {
		return err
	}
	for {
		head := make([]byte, 24)
		if _, err := io.ReadFull(from, head); err != nil {
			return err
		}
		before(binary.BigEndian.Uint16(head[2:]))
		if _, err := to.Write(head); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, int64(binary.BigEndian.Uint32(head[20:]))); err != nil {
			return err
		}
	}
}

// redirected puts a slow redirector before a server.
func (w *world) redirected(delay time.Duration) {
	node := w.serve(filepath.Dir(w.folder("files/data", 1, 1, 1)), nil)
	front := w.faulty(spec{Redirect: node, Delay: duration(delay)})
	w.target = w.url(front.url) + "/f0"
	f, direct := w.curl(w.target), w.curl(node+"/data/f0")
	w.holds(f.total > direct.total+0.8*delay.Seconds() && f.total > 2*direct.total, "a slow redirect expected: %.2f s, %.2f s without it",
		f.total, direct.total)
}

// summed has a server compute a checksum before it answers.
func (w *world) summed(rate int64) {
	dir := w.folder("files", 32, 32, 2)
	at := &siteSpec{Dir: dir, Listen: "127.0.0.1:" + w.freePort(), SumRate: rate}
	b, err := json.Marshal(at)
	w.must(err)
	_, _, _, err = w.child(nil, siteWord, string(b))
	w.must(err)
	w.target = w.url("http://"+at.Listen) + "/f0"
	long, short := w.curl(w.target), w.curl(w.target[:len(w.target)-1]+"2")
	w.holds(long.first > 2 && long.first > 0.5*long.total && short.first < 0.2*long.first,
		"a checksum expected: first byte after %.2f s, of a "+
			"small file after %.2f s", long.first, short.first)
}

// mountFile writes a file and mounts it over another, in this process's namespace.
func (w *world) mountFile(path, text, over string) {
	w.must(os.WriteFile(path, []byte(text), 0o644))
	w.must(unix.Mount(path, over, "", unix.MS_BIND, ""))
	w.ends(func() error { return unix.Unmount(over, unix.MNT_DETACH) })
}

func replaceHost(url, host, by string) string { return strings.Replace(url, "//"+host, "//"+by, 1) }
