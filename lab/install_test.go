package lab

import (
	"slices"
	"strings"
	"testing"
)

// Each distribution gets the command of its own package manager. Without a source tree, the hint
// names the source tree as the folder for make.
func TestInstall(t *testing.T) {
	const debian, ubuntu = "ID=debian\n", "NAME=Ubuntu\nID=ubuntu\nID_LIKE=debian\n"
	const rocky, fedora = "NAME=\"Rocky Linux\"\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "ID=fedora\n"
	xrootd := &MissingError{Program: "xrootd", Package: "xrootd-server"}
	cmsd := &MissingError{Program: "cmsd", Package: "xrootd-server"}
	kinit := &MissingError{Program: "kinit", Package: "krb5-user"}
	nginx := &MissingError{Program: "nginx", Package: "nginx"}
	condor := &MissingError{Program: "condor_master", Target: "needs"}
	kubelet := &MissingError{Program: "kubelet", Target: "needs-full"}
	for _, c := range []struct {
		release string
		missing []*MissingError
		want    string
	}{
		{debian, []*MissingError{xrootd, cmsd, kinit}, "apt-get install --no-install-recommends xrootd-server krb5-user"},
		{ubuntu, []*MissingError{nginx}, "apt-get install --no-install-recommends nginx"},
		{rocky, []*MissingError{xrootd, cmsd, kinit}, "dnf install epel-release && dnf install xrootd-server krb5-workstation"},
		{rocky, []*MissingError{nginx}, "dnf install nginx"},
		{fedora, []*MissingError{xrootd}, "dnf install xrootd-server"},
		{"ID=arch\n", []*MissingError{nginx}, "apt-get install --no-install-recommends nginx (or dnf install nginx)"},
		{debian, []*MissingError{condor, kubelet, condor}, "make needs-full in the source tree of weir, and start weir lab there"},
		{fedora, []*MissingError{{Program: "x"}}, ""},
	} {
		if got := distributionOf(c.release).install(c.missing); got != c.want {
			t.Errorf("%q: %q, want %q", c.release, got, c.want)
		}
	}
	for _, c := range []struct {
		s    distribution
		m    *MissingError
		want string
	}{
		{distributionOf(debian), kinit, "program kinit not found: install Debian package krb5-user"},
		{distributionOf(rocky), kinit, "program kinit not found: install RPM package krb5-workstation"},
		{distributionOf(""), kinit, "program kinit not found: install Debian package krb5-user or RPM package krb5-workstation"},
		{distribution{source: true}, condor, "program condor_master not found: run make needs"},
		{distribution{}, condor, "program condor_master not found: run make needs in the source tree of weir, and start weir lab there"},
	} {
		if got := c.m.text(c.s); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if !thisDistribution().source { // the tests run in the source tree
		t.Error("the source tree is not found")
	}
}

// Each program that a system of the lab needs has a package or is made in the source tree, and each
// line of rpm.txt is about a package that is needed.
func TestNeedsHaveAPackage(t *testing.T) {
	needed := map[string]bool{}
	for _, k := range Kinds() {
		for _, auth := range k.Auths {
			for servers := range 2 {
				for _, program := range k.config(Config{}, Options{Auth: auth, Servers: servers}).Needs() {
					name := packageOf(program)
					in, _ := inBuild(program)
					if name == "" && in == "" && !slices.Contains([]string{namespaces, rootUser, "condor_master"}, program) {
						t.Errorf("%s: %s is in no package", k.Name, program)
					}
					needed[name] = true
				}
			}
		}
	}
	needed[packageOf("xrdcp")], needed[packageOf("libXrdHttpTPC-5.so")] = true, true // a client; a plugin for tests
	for _, w := range words(rpmPackages) {
		if !needed[w[0]] || len(w) > 3 || len(w) == 3 && w[2] != "epel" {
			t.Errorf("rpm.txt: %s", strings.Join(w, " "))
		}
	}
}
