package rigs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weir/lab"
)

// nginx starts nginx with files of a size.
func (s *stage) nginx(c lab.NginxConfig, files, size int) (*site, *lab.System) {
	sys, err := c.Start(s.ctx)
	s.must(err)
	return s.system(sys, sys.URL, files, size), sys
}

// xrootd starts XRootD, whose files are read by root://.
func (s *stage) xrootd(files, size int) (*site, *lab.System) {
	sys, err := lab.XRootDConfig{}.Start(s.ctx)
	s.must(err)
	return s.system(sys, sys.URLs["root"], files, size), sys
}

// system makes a site of a system of package lab.
func (s *stage) system(sys *lab.System, url string, files, size int) *site {
	s.ends(sys.Stop)
	s.pids = append(s.pids, sys.Pids()...)
	w := &site{url: url, files: files, size: size}
	s.must(w.fill(sys.WriteFile))
	return w
}

// A daemon is a server that package lab does not have.
type daemon struct {
	argv    []string
	address string
	cmd     *exec.Cmd
}

// start starts the server and returns when it accepts connections.
func (d *daemon) start() error {
	d.cmd = exec.Command(d.argv[0], d.argv[1:]...)
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	var said strings.Builder
	d.cmd.Stdout, d.cmd.Stderr = &said, &said
	if err := d.cmd.Start(); err != nil {
		return err
	}
	for try := time.Now(); time.Since(try) < time.Minute; time.Sleep(5 * time.Millisecond) {
		conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", d.address)
		if err == nil {
			return conn.Close()
		}
	}
	return errors.Join(d.kill(), fmt.Errorf("%s does not answer: %s", d.argv[0], said.String()))
}

// kill ends the server and its children at once.
func (d *daemon) kill() error {
	if d.cmd == nil {
		return nil
	}
	_ = syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL) // or it is gone
	_ = d.cmd.Wait()                                      // its error only reports the signal
	d.cmd = nil
	return nil
}

// configured starts a server with files of a size below a folder of its own, root/data. make returns its command line
// and its configuration from that folder and a port; the configuration is the file conf in that folder.
func (s *stage) configured(files, size int, make func(dir, port string) (argv []string, conf string)) (*site, *daemon) {
	s.count++
	dir := filepath.Join(s.dir, fmt.Sprintf("server-%d", s.count))
	s.must(os.MkdirAll(filepath.Join(dir, "root/data"), 0o755))
	port := s.freePort()
	argv, conf := make(dir, port)
	s.must(os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o644))
	var err error
	argv[0], err = program(argv[0])
	s.must(err)
	d := &daemon{argv: argv, address: "127.0.0.1:" + port}
	w := &site{url: "http://" + d.address + "/data", files: files, size: size}
	s.must(w.fill(func(name string, content []byte) error {
		return os.WriteFile(filepath.Join(dir, "root/data", name), content, 0o644)
	}))
	s.ends(d.kill)
	s.must(d.start())
	s.pids = append(s.pids, d.cmd.Process.Pid)
	return w, d
}

// freePort returns a port at which nothing listens, below the ports that the kernel gives to
// clients: a server can be away without a client taking its port.
func (s *stage) freePort() string {
	for port := 20000 + os.Getpid()%5000; port < 32000; port++ {
		l, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp4", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			s.must(l.Close())
			return strconv.Itoa(port)
		}
	}
	s.must(errors.New("no free port from 20000 to 32000"))
	return ""
}

// nowhere returns an address at which nothing listens while the rig is played, and nothing can.
func (s *stage) nowhere() string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	s.must(err)
	s.ends(func() error { return unix.Close(fd) })
	s.must(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := unix.Getsockname(fd)
	s.must(err)
	return fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
}

// apache starts Apache.
func (s *stage) apache(files, size int) (*site, *daemon) {
	return s.configured(files, size, func(dir, port string) ([]string, string) {
		conf := `ServerRoot ` + dir + `
ServerName localhost
Listen 127.0.0.1:` + port + `
PidFile ` + dir + `/pid
ErrorLog ` + dir + `/error.log
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
User nobody
Group nogroup
DocumentRoot ` + dir + `/root
KeepAlive On
MaxKeepAliveRequests 0
<Directory ` + dir + `/root>
Require all granted
</Directory>
`
		return []string{"apache2", "-f", dir + "/conf", "-DFOREGROUND"}, conf
	})
}

// lighttpd starts lighttpd; more are lines of its configuration.
func (s *stage) lighttpd(files, size int, more string) (*site, *daemon) {
	return s.configured(files, size, func(dir, port string) ([]string, string) {
		conf := fmt.Sprintf("server.document-root = %q\nserver.port = %s\nserver.bind = \"127.0.0.1\"\nserver.max-keep-alive-requests = 0\n%s\n",
			dir+"/root", port, more)
		return []string{"lighttpd", "-D", "-f", dir + "/conf"}, conf
	})
}

// python starts Python's http.server, which uses HTTP/1.0 and closes each connection; burn is
// additional CPU time of each request. Without threads it serves one connection after the other.
func (s *stage) python(files, size int, threads bool, burn time.Duration) (*site, *daemon) {
	const script = `
import http.server, sys, time
class H(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *a): super().__init__(*a, directory=sys.argv[1])
    def log_message(self, *a): pass
    def do_GET(self):
        end = time.thread_time() + float(sys.argv[4])
        while time.thread_time() < end: pass
        super().do_GET()
kind = http.server.ThreadingHTTPServer if sys.argv[3] == "true" else http.server.HTTPServer
kind.request_queue_size = 512
kind(("127.0.0.1", int(sys.argv[2])), H).serve_forever()
`
	return s.configured(files, size, func(dir, port string) ([]string, string) {
		return []string{"/usr/bin/python3", "-c", script, dir + "/root", port, strconv.FormatBool(threads), fmt.Sprint(burn.Seconds())}, ""
	})
}

// haproxy starts HAProxy before servers; each of them may have a line of options.
func (s *stage) haproxy(w *site, servers ...string) (front *site, socket string) {
	socket = filepath.Join(s.dir, "haproxy.sock")
	front, _ = s.configured(0, 0, func(dir, port string) ([]string, string) {
		conf := "global\n stats socket " + socket + " mode 600 level operator\ndefaults\n mode http\n option contstats\n timeout connect 5s\n " +
			"timeout client 30s\n timeout server 30s\n timeout queue 30s\n retries 0\nfrontend front\n bind 127.0.0.1:" + port +
			"\n default_backend back\nbackend back\n balance roundrobin\n option http-server-close\n"
		for i, line := range servers {
			conf += fmt.Sprintf(" server s%d %s\n", i+1, line)
		}
		return []string{"haproxy", "-db", "-f", dir + "/conf"}, conf
	})
	front.files, front.size = w.files, w.size
	return front, socket
}

// host returns the address of a site, as HOST:PORT.
func (w *site) host() string {
	_, rest, _ := strings.Cut(w.url, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}
