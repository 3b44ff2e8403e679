package scenario

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"weir/internal/document"
	"weir/internal/tags"
	"weir/monitor"
	"weir/storage"
)

func (c *checker) hosts() {
	seen := map[string]bool{}
	for i, h := range c.Hosts {
		path := fmt.Sprintf("hosts.%d", i)
		roles := tags.Words[monitor.Host]("role")
		c.refuse(!slices.Contains(roles, string(h.Role)),
			path+".role", "unknown role %s; use one of %s", document.Quote(string(h.Role)), strings.Join(roles, ", "))
		if h.Name == "" {
			c.say(path+".name", "missing; give a name to a host that is monitored remotely")
		} else if seen[h.Name] {
			c.say(path+".name", "%s is there twice", document.Quote(h.Name))
		}
		seen[h.Name] = true
		if h.NodeExporter != "" {
			c.exporter(path+".node_exporter", h)
		}
		if h.XRootDReport != "" {
			c.report(path+".xrootd_report", h)
		}
		c.backend(path, h)
		for _, list := range []struct {
			key string
			ids []int
		}{{"pids", h.Pids}, {"groups", h.Groups}} {
			c.refuse(slices.ContainsFunc(list.ids, func(id int) bool { return id < 1 }),
				path+"."+list.key, "%v is out of range; process ids start at 1", list.ids)
		}
	}
}

func (c *checker) exporter(path string, h monitor.Host) {
	u, err := url.Parse(h.NodeExporter)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		c.say(path, "not the URL of a page; write it as in http://%s:9100/metrics", h.Name)
	case u.User != nil:
		c.say(path, "a scenario must not contain secrets; omit the part before the @")
	}
	c.refuse(len(h.Processes)+len(h.Pids)+len(h.Groups) > 0,
		path, "processes, pids and groups are monitored on this machine only; omit them or node_exporter")
}

// report checks a port to which servers send their monitoring reports.
func (c *checker) report(path string, h monitor.Host) {
	host, port, err := net.SplitHostPort(h.XRootDReport)
	n, bad := strconv.ParseUint(port, 10, 16)
	c.refuse(err != nil || bad != nil || n == 0 || host != "" && net.ParseIP(host) == nil,
		path, "%s is not a port of this machine; write it as in :9931, or 192.0.2.1:9931", document.Quote(h.XRootDReport))
	c.refuse(len(h.Processes)+len(h.Pids)+len(h.Groups) > 0,
		path, "processes, pids and groups are monitored on this machine only; give them an entry of their own")
}

func (c *checker) auth() { c.authAt("auth", c.Auth) }

// authAt checks the authentication in the key at.
func (c *checker) authAt(at string, a storage.Auth) {
	a = a.Discovered()
	if name, known := string(a.Method), tags.Words[storage.Auth]("method"); name != "" && !slices.Contains(known, name) {
		c.say(at+".method", "unknown method %s%s", document.Quote(name), document.Meant(name, known))
	}
	c.refuse(a.PasswordFile != "" && a.PasswordVariable != "",
		at+".password_variable", "password_file and password_variable exclude each other; keep one")
	c.refuse(a.TokenFile != "" && a.TokenVariable != "",
		at+".token_variable", "token_file and token_variable exclude each other; keep one")
	password := a.PasswordFile != "" || a.PasswordVariable != ""
	switch {
	case a.Method == storage.TokenAuth && a.TokenFile == "" && a.TokenVariable == "":
		c.say(at+".method", "token needs token_file or token_variable: $BEARER_TOKEN, $BEARER_TOKEN_FILE, $XDG_RUNTIME_DIR/bt_uUID and "+
			"/tmp/bt_uUID have no token either")
	case a.Method == storage.BasicAuth && (a.User == "" || !password):
		c.say(at+".method", "basic needs user, and password_file or password_variable")
	case a.Method == storage.X509Auth && len(c.Client.Command) == 0 && a.CertFile == "" && a.ProxyFile == "":
		c.say(at+".method", "x509 needs cert_file and key_file, or proxy_file")
	case a.KeytabFile != "" && a.TicketFile != "":
		c.say(at+".ticket_file", "keytab_file and ticket_file exclude each other; keep one")
	case a.KeytabFile != "" && a.User == "":
		c.say(at+".keytab_file", "needs user; give the principal whose keys it holds, such as user: weir@EXAMPLE.ORG")
	case a.KeytabFile != "" && len(c.Client.Command) > 0:
		c.say(at+".keytab_file", "an external program needs a ticket; fetch one with kinit -k -t, and name its cache with ticket_file")
	case a.Method != storage.KerberosAuth && a.KeytabFile+a.TicketFile+a.Krb5File != "":
		c.say(at+".method", "keytab_file, ticket_file and krb5_file need method: krb5; use it, or omit them")
	case a.KeyFile != "" && a.CertFile == "":
		c.say(at+".key_file", "needs cert_file as well")
	case a.Method == "" && (password || a.TokenFile != "" || a.TokenVariable != ""):
		c.say(at, "has a secret but no method; write method: basic or method: token")
	}
}

// near reports whether the service runs on this machine.
func (s *Scenario) near() bool {
	if s.Target == BuiltIn {
		return true
	}
	return slices.ContainsFunc(append([]string{s.Target}, s.Others...), func(target string) bool {
		u, err := url.Parse(target)
		if err != nil {
			return false
		}
		ip := net.ParseIP(u.Hostname())
		return u.Scheme == "file" || u.Scheme == "simulated" || u.Hostname() == thisMachine || ip != nil && ip.IsLoopback()
	})
}
