package lab

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

//go:embed sshd.sh
var sshdScript string

//go:embed sshd_config
var sshdConfig string

// Node is the role of a Server that allows logins.
const Node = "node"

// SSHConfig configures machines for logins by ssh; its zero value is a valid configuration.
type SSHConfig struct {
	Config
	Nodes int // machines to log in to; 0 means 1
}

// Start starts machines to log in to as the user that started them: this machine under the names
// node1, node2..., each with its own sshd, host name and home folder. Processes on a node end with
// it (KillPart, Stop). Env has the PATH with ssh, scp and sftp configured for these nodes and for
// no other machine's keys. With Config.Disk each node has a scratch disk, which is TMPDIR of its
// sessions.
func (c SSHConfig) Start(ctx context.Context) (*System, error) {
	if c.Nodes < 0 || c.Nodes > MaxServers {
		return nil, fmt.Errorf("lab: ssh: %d nodes: use 1 to %d", c.Nodes, MaxServers)
	}
	c.ours = true
	return c.launch(ctx, "ssh", "sshd", func(s *System, program string) { c.build(ctx, s, program) }, "bin")
}

// Needs returns the programs that it needs.
func (SSHConfig) Needs() []string {
	return []string{"sshd", "ssh", "scp", "sftp", "ssh-keygen", "mount", "unshare", "hostname", namespaces}
}

func (c SSHConfig) build(ctx context.Context, s *System, sshd string) {
	found, err := c.programs(c.Needs())
	s.fail(err)
	me := s.me()
	for _, key := range []string{"host_key", "key"} {
		s.tool(ctx, -1, nil, found["ssh-keygen"], "-q", "-t", "ed25519", "-N", "", "-C", "weir-lab", "-f", filepath.Join(s.Dir, key))
	}
	var extra []string
	if os.Geteuid() != 0 {
		extra = []string{found["unshare"], fmt.Sprint(os.Geteuid()), fmt.Sprint(os.Getegid())}
	}
	s.lastDisk(fmt.Sprintf("node%d", max(1, c.Nodes)))
	for n := range max(1, c.Nodes) {
		sshNode(s, fmt.Sprintf("node%d", n+1), me, sshd, extra)
	}
	s.Batch = "ssh"
	s.Env = append(s.Env, "PATH="+filepath.Join(s.Dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	sshClients(s, me, found)
}

// sshNode adds one machine to log in to.
func sshNode(s *System, name string, me *user.User, sshd string, extra []string) {
	p := s.newPort(false)
	home := s.newDir(filepath.Join(name, "home"))
	passwd, err := os.ReadFile("/etc/passwd")
	s.fail(err)
	values := map[string]string{"Address": p.Address(), "Lab": s.Dir, "User": me.Username, "Scratch": ""}
	if s.disks != nil {
		s.newDisk(name, filepath.Join(name, "scratch"))
		values["Scratch"] = filepath.Join(s.Dir, name, "scratch")
	}
	conf := s.render(sshdConfig, values)
	s.openFile(filepath.Join(name, "sshd_config"), conf, 0o644)
	s.openFile(filepath.Join(name, "passwd"), withHome(passwd, me, home), 0o644)
	s.Servers = append(s.Servers, Server{Name: name, Role: Node, Address: p.Address(), Data: home})
	argv := append([]string{"/bin/sh", "-c", sshdScript, "sshd", filepath.Join(s.Dir, name), name, sshd}, extra...)
	part := s.part(name, askGreeting(p.Address(), "SSH-2.0-", ""), argv...)
	part.server, part.apart = name, true
	s.confine(name, part)
}

// withHome returns a file like /etc/passwd in which one user has another home and a plain shell.
func withHome(passwd []byte, who *user.User, home string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:x:%s:%s:weir:%s:/bin/sh\n", who.Username, who.Uid, who.Gid, home)
	for line := range strings.Lines(string(passwd)) {
		if !strings.HasPrefix(line, who.Username+":") {
			b.WriteString(line)
		}
	}
	return []byte(b.String())
}

// sshClients writes the configuration for the nodes that ssh and its companions need.
func sshClients(s *System, me *user.User, found map[string]string) {
	if s.err != nil {
		return
	}
	key, err := os.ReadFile(filepath.Join(s.Dir, "host_key.pub"))
	s.fail(err)
	var config, known strings.Builder
	for _, n := range s.Servers {
		_, port, _ := net.SplitHostPort(n.Address)
		fmt.Fprintf(&config, "Host %s\n\tHostName 127.0.0.1\n\tPort %s\n\tHostKeyAlias %s\n", n.Name, port, n.Name)
		fmt.Fprintf(&known, "%s %s", n.Name, key)
	}
	fmt.Fprintf(&config, "Host *\n\tUser %s\n\tIdentityFile %s/key\n\tIdentitiesOnly yes\n\tIdentityAgent none\n\tUserKnownHostsFile "+
		"%s/known_hosts\n\tGlobalKnownHostsFile none\n\tStrictHostKeyChecking yes\n", me.Username, s.Dir, s.Dir)
	s.file("ssh_config", []byte(config.String()))
	s.file("known_hosts", []byte(known.String()))
	for _, name := range []string{"ssh", "scp", "sftp"} {
		s.openFile("bin/"+name, []byte("#!/bin/sh\nexec '"+found[name]+"' -F '"+s.Dir+"/ssh_config' \"$@\"\n"), 0o755)
	}
}
