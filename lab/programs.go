package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Built returns the folder build/NAME of the source tree of the working directory, or of the tree
// in which the program was built, if it is complete: then it has a file NAME.txt.
func Built(name string) (string, error) {
	var starts []string
	if dir, err := os.Getwd(); err == nil {
		starts = append(starts, dir)
	}
	if _, source, _, ok := runtime.Caller(0); ok && filepath.IsAbs(source) {
		starts = append(starts, filepath.Dir(source))
	}
	for _, dir := range starts {
		for ; ; dir = filepath.Dir(dir) {
			made := filepath.Join(dir, "build", name)
			if isFile(filepath.Join(dir, "go.mod")) && isFile(filepath.Join(made, name+".txt")) {
				return made, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", fmt.Errorf("no folder build/%s in the source tree: make needs or make needs-full makes it", name)
}

// rootUser is the result of find if only root may use the program.
const rootUser = "root"

// unpackedXRootD begins the name by which find looks for a version of XRootD that need not be this system's.
const unpackedXRootD = "xrootd-"

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// program finds name according to c, or in PATH and the folders of daemons.
func (c Config) program(name string) (string, error) {
	if p := c.Programs[name]; p != "" {
		return exec.LookPath(p)
	}
	return Find(name)
}

// programs finds several by their names. The error names all that are missing.
func (c Config) programs(names []string) (map[string]string, error) {
	found := map[string]string{}
	var err error
	for _, name := range names {
		path, missing := c.program(name)
		err = errors.Join(err, missing)
		found[name] = path
	}
	return found, err
}

// Find looks for a program in PATH, then where daemons lie, which the PATH of an ordinary user
// often leaves out; for a name that ends in .so, the folders of libraries.
func Find(name string) (string, error) {
	if in, pattern := inBuild(name); in != "" {
		return findBuilt(in, pattern)
	}
	switch name {
	case "condor_master":
		dir, err := unpackedCondor()
		return filepath.Join(dir, "usr/sbin", name), err
	case "bootstrap.jar":
		if path := filepath.Join(tomcatHome, "bin", name); isFile(path) {
			return path, nil
		}
	case namespaces:
		return "", tryApart()
	case rootUser:
		if os.Geteuid() != 0 {
			return "", &MissingError{Program: name, Why: "only root can start this"}
		}
		return "", nil
	case "python3": // the system's: another may be in a folder that a plain user cannot enter
		if isFile("/usr/bin/python3") {
			return "/usr/bin/python3", nil
		}
	case "postgres", "initdb", "pg_isready":
		if path, ok := findPostgres(name); ok {
			return path, nil
		}
	}
	if version, ok := strings.CutPrefix(name, unpackedXRootD); ok {
		_, _, err := findXRootD(version)
		return "", err
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	if strings.HasSuffix(name, ".so") {
		for _, dir := range []string{"/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib*"} {
			if found, _ := filepath.Glob(filepath.Join(dir, name)); len(found) > 0 {
				return found[0], nil
			}
		}
	}
	return "", &MissingError{Program: name, Package: packageOf(name)}
}

// inBuild returns the folder in build of a program that make needs puts there, and its file; "" for other programs.
func inBuild(name string) (in, pattern string) {
	switch name {
	case "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl":
		return "kubernetes", name
	case "versitygw":
		return name, name
	case "vsftpd", "pure-ftpd":
		return name, "usr/sbin/" + name
	case "artemis":
		return name, "bin/" + name
	case "keycloak":
		return name, "lib/quarkus-run.jar"
	case "s3proxy":
		return name, name + "-*.jar"
	case "rucio":
		return "fts", "bin/rucio"
	}
	return "", ""
}

// findBuilt returns the file of a program in build/in.
func findBuilt(in, pattern string) (string, error) {
	if dir, err := Built(in); err == nil {
		if found, _ := filepath.Glob(filepath.Join(dir, pattern)); len(found) > 0 {
			return found[0], nil
		}
	}
	target := "needs-full"
	if in == "versitygw" || in == "fts" {
		target = "needs"
	}
	return "", &MissingError{Program: filepath.Base(pattern), Target: target}
}

// NoDNS rewrites cmd, which is not started yet, so that its program contacts no name server: in a
// mount namespace of its own /etc/nsswitch.conf has "hosts: files". Clients such as xrdcp look the
// server's name up several times in each process, which on a host with a slow name server costs
// more than a small transfer. Only root may do that; for others it is an error and cmd stays as it
// was.
func NoDNS(cmd *exec.Cmd) error { return lookUp(cmd, "files", "") }

// NameServer rewrites cmd as NoDNS does, so that its program queries the name server at that
// address, port 53, for names that /etc/hosts does not have.
func NameServer(cmd *exec.Cmd, address string) error { return lookUp(cmd, "files dns", address) }

// lookUp gives cmd an order of look-ups of hosts, and a name server unless it is "".
func lookUp(cmd *exec.Cmd, hosts, server string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("lab: a mount namespace without name servers needs root")
	}
	unshare, err := Find("unshare")
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if cmd.Err != nil {
		return cmd.Err
	}
	const script = `bind() { f=$(mktemp) && cat >"$f" && chmod 644 "$f" && mount --bind "$f" "$1" && rm "$f"; }
printf 'passwd: files\ngroup: files\nhosts: %s\n' "$1" | bind /etc/nsswitch.conf &&
{ [ -z "$2" ] || echo "nameserver $2" | bind "$(readlink -f /etc/resolv.conf)"; } && shift 2 && exec "$@"`
	args := append([]string{unshare, "--mount", "--propagation", "private", "sh", "-c", script, "sh", hosts, server, cmd.Path},
		cmd.Args[1:]...)
	cmd.Path, cmd.Args = unshare, args
	return nil
}

// outputOf runs a program that ends by itself, and returns its output without the space around it.
// An error has all output.
func outputOf(cmd *exec.Cmd) (string, error) {
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(append(failed.Bytes(), out...)))
	}
	return string(bytes.TrimSpace(out)), err
}
