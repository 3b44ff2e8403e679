package lab_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"weir/lab"
)

func TestPackages(t *testing.T) {
	p := lab.Packages()
	for _, program := range []string{"curl", "nginx", "xrootd", "xrdcp", "gfal-copy", "globus-url-copy", "globus-gridftp-server",
		"wrk", "iperf3"} {
		if lab.PackageOf(program) == "" {
			t.Errorf("no package brings %s", program)
		}
	}
	if programs, ok := p["gfal2-plugin-xrootd"]; !ok || len(programs) != 0 {
		t.Errorf("a package of plugins alone: %v %v", programs, ok)
	}
	for name := range p {
		if strings.ContainsAny(name, "#/ \t") {
			t.Errorf("%q is no name of a package", name)
		}
	}
}

func TestNoDNS(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "cat", "/etc/nsswitch.conf")
	if os.Geteuid() != 0 {
		if err := lab.NoDNS(cmd); err == nil {
			t.Error("it says that it works without being root")
		}
		return
	}
	before, err := os.ReadFile("/etc/nsswitch.conf")
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.NoDNS(cmd); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "hosts: files\n") {
		t.Errorf("the program sees %q, %v", out, err)
	}
	if after, err := os.ReadFile("/etc/nsswitch.conf"); err != nil || string(after) != string(before) {
		t.Errorf("it changed for everyone: %v", err)
	}
}
