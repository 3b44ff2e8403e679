package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The helper is judged by what `go test` would see of it: skipped or failed.
func TestNeed(t *testing.T) {
	if program := os.Getenv("WEIR_LAB_NEED"); program == "links" {
		Without(t, program, "no links here")
	} else if program != "" {
		Need(t, program)
		return
	}
	for _, c := range []struct {
		program, require, want string
		short                  bool
	}{
		{program: "sh", require: "all", want: "--- PASS"},
		{program: "no-such-program", require: "", want: "--- SKIP"},
		{program: "no-such-program", require: "all", want: "--- FAIL"},
		{program: "no-such-program", require: "xrdcp, no-such-program", want: "--- FAIL"},
		{program: "no-such-program", require: "xrdcp", want: "--- SKIP"},
		{program: "links", require: "xrdcp", want: "--- SKIP"},
		{program: "links", require: "xrdcp links", want: "--- FAIL"},
		{program: "links", require: "all", want: "--- FAIL"},
		{program: "sh", want: "--- SKIP", short: true},
		{program: "sh", require: "all", want: "--- PASS", short: true},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNeed$", "-test.v", fmt.Sprintf("-test.short=%t", c.short))
		cmd.Env = append(os.Environ(), "WEIR_LAB_NEED="+c.program, "WEIR_REQUIRE="+c.require)
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), c.want) {
			t.Errorf("need %s with WEIR_REQUIRE=%q: want %s in\n%s", c.program, c.require, c.want, out)
		}
	}
}

func TestPackages(t *testing.T) {
	p := Packages()
	for _, program := range []string{"curl", "nginx", "xrootd", "xrdcp", "gfal-copy", "globus-url-copy", "globus-gridftp-server",
		"wrk", "iperf3"} {
		if packageOf(program) == "" {
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
		if err := NoDNS(cmd); err == nil {
			t.Error("it says that it works without being root")
		}
		return
	}
	before, err := os.ReadFile("/etc/nsswitch.conf")
	if err != nil {
		t.Fatal(err)
	}
	if err := NoDNS(cmd); err != nil {
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
