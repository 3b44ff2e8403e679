package lab

import (
	"fmt"
	"os"
	"os/exec"
)

// NoDNS rewrites cmd, which is not started yet, so that its program asks no
// name server: in a mount namespace of its own /etc/nsswitch.conf says
// "hosts: files". Clients such as xrdcp look the server's name up several
// times in each process, which on a host with a slow name server costs more
// than a small transfer. Only root may do that; for others it is an error and
// cmd stays as it was.
func NoDNS(cmd *exec.Cmd) error { return lookUp(cmd, "files", "") }

// NameServer rewrites cmd as NoDNS does, so that its program asks the name server at
// that address, port 53, for what /etc/hosts does not have.
func NameServer(cmd *exec.Cmd, address string) error { return lookUp(cmd, "files dns", address) }

// lookUp gives cmd an order of look-ups of hosts, and a name server unless it is "".
func lookUp(cmd *exec.Cmd, hosts, server string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("lab: a mount namespace without name servers needs root")
	}
	unshare, err := find("unshare")
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if cmd.Err != nil {
		return cmd.Err
	}
	const script = `bind() { f=$(mktemp) && cat >"$f" && chmod 644 "$f" && mount --bind "$f" "$1" && rm "$f"; }
printf 'passwd: files\ngroup: files\nhosts: %s\n' "$1" | bind /etc/nsswitch.conf &&
{ [ -z "$2" ] || echo "nameserver $2" | bind "$(readlink -f /etc/resolv.conf)"; } && shift 2 && exec "$@"`
	args := append([]string{unshare, "--mount", "--propagation", "private", "sh", "-c", script, "sh", hosts, server, cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.Args = unshare, args
	return nil
}
