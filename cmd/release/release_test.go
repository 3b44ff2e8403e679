package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/labtest"
)

// The same commit in two folders gives the same bytes, and each file of the release has the
// expected contents: tarball, packages, image, lists and notes. The packages are installed, used,
// upgraded and removed on machines with systemd.
func TestRelease(t *testing.T) {
	tier.Full(t, "a release, built twice")
	labtest.Need(t, "git", "dpkg-deb", "rpm", "skopeo", "sha256sum", "tar")
	nfpm, err := filepath.Abs("../../bin/nfpm")
	if _, missing := os.Stat(nfpm); err != nil || missing != nil {
		tier.Without(t, "nfpm", "bin/nfpm is missing: make bin/nfpm")
	}
	one := checkout(t, "one")
	other := filepath.Join(t.TempDir(), "another/and/longer")
	call(t, one, "git", "worktree", "add", "-q", "--detach", other)
	dist := built(t, one, nfpm, "1.2.3")
	again := built(t, other, nfpm, "1.2.3")
	for name, text := range dist.files {
		if !bytes.Equal(text, again.files[name]) {
			t.Errorf("%s is not the same when it is built in another folder, a second work tree", name)
		}
	}
	if want := []string{
		"NOTES.md", "SHA256SUMS", "weir-1.2.3-1.x86_64.rpm", "weir-1.2.3-linux-amd64.cdx.json", "weir-1.2.3-linux-amd64.tar.gz",
		"weir-1.2.3-oci.tar", "weir_1.2.3_amd64.deb",
	}; !slices.Equal(dist.names(), want) {
		t.Fatalf("files %q, want %q", dist.names(), want)
	}
	call(t, dist.dir, "sha256sum", "-c", "--strict", "SHA256SUMS")
	commit := strings.TrimSpace(call(t, one, "git", "rev-parse", "HEAD"))
	says := "weir 1.2.3, commit " + commit + " of 2026-01-31T12:00:00Z\n"
	t.Run("tarball", func(t *testing.T) {
		dir := t.TempDir()
		call(t, dir, "tar", "xf", filepath.Join(dist.dir, "weir-1.2.3-linux-amd64.tar.gz"))
		in := filepath.Join(dir, "weir-1.2.3-linux-amd64")
		if got := call(t, in, "bin/weir", "version"); got != says {
			t.Errorf("it says %q, want %q", got, says)
		}
		if program, err := elf.Open(filepath.Join(in, "bin/weir")); err != nil || program.Section(".interp") != nil {
			t.Errorf("the program is not static, %v", err)
		}
		for _, name := range []string{"share/man/man1/weir-run.1", "share/bash-completion/completions/weir", "share/doc/weir/LICENSE",
			"share/man/man5/weir-scenario.5", "share/doc/weir/html/index.html"} {
			if info, err := os.Stat(filepath.Join(in, name)); err != nil || info.Size() < 1000 {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("deb", func(t *testing.T) { checkDeb(t, filepath.Join(dist.dir, "weir_1.2.3_amd64.deb")) })
	t.Run("rpm", func(t *testing.T) { checkRPM(t, filepath.Join(dist.dir, "weir-1.2.3-1.x86_64.rpm"), says) })
	t.Run("image", func(t *testing.T) { checkImage(t, filepath.Join(dist.dir, "weir-1.2.3-oci.tar"), says) })
	t.Run("page", func(t *testing.T) { followInstall(t, dist.dir) })
	t.Run("bill", func(t *testing.T) { checkBill(t, dist.files["weir-1.2.3-linux-amd64.cdx.json"]) })
	if notes := string(dist.files["NOTES.md"]); !strings.HasPrefix(notes, "# weir 1.2.3\n\nCommit "+commit+" of 2026-01-31.\n\n") ||
		!strings.Contains(notes, "### Added") {
		t.Errorf("notes: %.200s", notes)
	}
	later := built(t, one, nfpm, "1.2.4")
	script, err := filepath.Abs("../../deploy/deploy")
	require.NoError(t, err)
	t.Run("packages", func(t *testing.T) {
		if said := onMachines(t, "testdata/install.sh", dist.dir, later.dir); !strings.HasSuffix(said, "installed, upgraded and removed\n") {
			t.Error(said)
		}
	})
	t.Run("deploy", func(t *testing.T) {
		deb := filepath.Join(dist.dir, "weir_1.2.3_amd64.deb")
		if said := onMachines(t, "testdata/deploy.sh", deb, script); !strings.HasSuffix(said, "deployed twice\n") {
			t.Error(said)
		}
	})
}

// onMachines runs a script that boots machines (testdata/machine.sh), and returns its output.
func onMachines(t *testing.T, script string, args ...string) string {
	t.Helper()
	labtest.Need(t, "curl", "ip", "nsenter", "pgrep", "setpriv", "sqlite3", "systemctl", "unshare")
	apart := []string{"--mount", "--pid", "--net", "--fork", "--kill-child"}
	const try = "mount -t cgroup2 cgroup2 /mnt && mkdir /mnt/weir-$$ && rmdir /mnt/weir-$$"
	if out, err := exec.CommandContext(t.Context(), "unshare", append(apart, "sh", "-c", try)...).CombinedOutput(); err != nil {
		tier.Without(t, "machines", fmt.Sprintf("only root, with control groups of its own, boots a copy of this system: %v %s", err, out))
	}
	return call(t, ".", "unshare", slices.Concat(apart, []string{script}, args, []string{t.TempDir()})...)
}

// checkout returns a commit, at a fixed time, of the files here that git tracks or would add.
func checkout(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	call(t, "../..", "sh", "-c", `git ls-files -z -co --exclude-standard | tar c --null --ignore-failed-read -T - | tar x -C "$0"`, dir)
	t.Setenv("GIT_AUTHOR_DATE", "2026-01-31T12:00:00Z")
	t.Setenv("GIT_COMMITTER_DATE", "2026-01-31T12:00:00Z")
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=weir", "-c", "user.email=weir@localhost", "commit", "-q", "-m", "all"},
	} {
		call(t, dir, "git", args...)
	}
	return dir
}

// made is a release that has been built: a folder and its files.
type made struct {
	dir   string
	files map[string][]byte
}

func (m made) names() (all []string) {
	for name := range m.files {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func built(t *testing.T, source, nfpm, version string) made {
	t.Helper()
	m := made{t.TempDir(), map[string][]byte{}}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-version", version, "-source", source, "-out", m.dir, "-nfpm", nfpm, "-targets", "linux/amd64"},
		&out); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(m.dir)
	require.NoError(t, err)
	for _, e := range entries {
		text := require.File(t, filepath.Join(m.dir, e.Name()))
		m.files[e.Name()] = text
		if !strings.Contains(out.String(), fmt.Sprintf("%10d  %s\n", len(text), filepath.Join(m.dir, e.Name()))) {
			t.Errorf("%s is not listed:\n%s", e.Name(), out.String())
		}
	}
	return m
}

// call runs a program in a folder and returns its output.
func call(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	if path := filepath.Join(dir, name); strings.Contains(name, "/") {
		name, _ = filepath.Abs(path)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		t.Fatalf("%s: %v\n%s\n%s", cmd, err, out, failed.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// followInstall runs the commands of docs/install.md and README.md in the folder of a release, on a
// copy of the image, and without changing this system. TestInstall runs make install.
func followInstall(t *testing.T, dist string) {
	t.Helper()
	here := strings.NewReplacer("apt install ", "apt-get install --simulate ", "dnf install ",
		"rpm -i --test --nodeps --nosignature --root "+t.TempDir()+" ", "docker-daemon:weir:1.2.3", "--insecure-policy dir:"+t.TempDir())
	ran := 0
	for _, page := range []string{"docs/install.md", "README.md"} {
		for _, block := range shellBlock.FindAllStringSubmatch(string(require.File(t, filepath.Join("../..", page))), -1) {
			for line := range strings.Lines(block[1]) {
				command, note, _ := strings.Cut(strings.TrimSpace(line), "  #")
				for _, command := range append([]string{command}, inRemark.FindAllString(note, -1)...) {
					if ran++; strings.HasPrefix(command, "make install") || strings.HasPrefix(command, "docker run") {
						continue
					}
					call(t, dist, "sh", "-ec", here.Replace(command))
				}
			}
		}
	}
	if ran < 11 {
		t.Errorf("only %d commands found", ran)
	}
}

var (
	shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")
	inRemark   = regexp.MustCompile(`(?:dnf|skopeo) .*`)
)

// packaged are files of both packages.
func packaged() []string {
	return []string{
		"/usr/bin/weir", "/usr/lib/systemd/system/weir-coordinator.service", "/etc/weir/agent.yaml",
		"/usr/share/weir/grafana/weir-transfers.json", "/usr/share/weir/grafana/weir-load-tests.json", "/usr/share/weir/prometheus/weir.yml",
		"/usr/share/weir/python/weir.py",
		"/usr/share/man/man1/weir.1.gz", "/usr/share/man/man1/weir-transfer-submit.1.gz", "/usr/share/man/man5/weir-scenario.5.gz",
		"/usr/share/man/man5/weir-configuration.5.gz", "/usr/share/man/man7/weir-exit-codes.7.gz", "/usr/share/doc/weir/copyright",
		"/usr/share/doc/weir/html/index.html", "/usr/share/doc/weir/html/scenario.html", "/usr/share/doc/weir/html/search.js",
		"/usr/share/doc/weir/html/report.png", "/usr/share/doc/weir/examples/first-light.yaml",
		"/usr/share/doc/weir/examples/transfer/routing.yaml", "/usr/share/doc/weir/examples/jobs/analysis.py",
	}
}

// checkDeb checks the contents and the metadata of the Debian package. The changelog is
// compressed and has the version of the package.
func checkDeb(t *testing.T, file string) {
	root := t.TempDir()
	call(t, ".", "dpkg-deb", "-x", file, root)
	for _, want := range append(packaged(), "/usr/share/doc/weir/changelog.gz") {
		if info, err := os.Stat(filepath.Join(root, want)); err != nil || info.Size() == 0 {
			t.Errorf("%s is not in the package: %v", want, err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "usr/share/doc/weir/examples/transfer/transfer.go")); err == nil {
		t.Error("code is among the examples")
	}
	for field, want := range map[string]string{
		"Version": "1.2.3", "Maintainer": "weir <weir@example.org>", "Homepage": "https://weir.example.org/", "Section": "net",
	} {
		if got := strings.TrimSpace(call(t, ".", "dpkg-deb", "-f", file, field)); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	changes := call(t, root, "zcat", filepath.Join(root, "usr/share/doc/weir/changelog.gz"))
	if !strings.HasPrefix(changes, "weir (1.2.3) unstable; urgency=medium\n\n  * ") ||
		!strings.HasSuffix(changes, "\n\n -- weir <weir@example.org>  Sat, 31 Jan 2026 12:00:00 +0000\n") {
		t.Errorf("changelog: %.200s", changes)
	}
	legal := string(require.File(t, filepath.Join(root, "usr/share/doc/weir/copyright")))
	for _, want := range []string{
		"Copyright 2026 ", "/usr/share/common-licenses/Apache-2.0", "Go and its standard library", "github.com/spf13/cobra v",
		"modernc.org/sqlite v", "Redistributions in binary form must reproduce",
	} {
		if !strings.Contains(legal, want) {
			t.Errorf("copyright lacks %q", want)
		}
	}
	config := string(require.File(t, filepath.Join(root, "etc/weir/coordinator.yaml")))
	if !strings.Contains(config, "\n# approve_up_to: ") || strings.Contains(config, "\napprove_up_to") {
		t.Errorf("requests are approved without an administrator's decision:\n%s", config)
	}
	if _, err := exec.LookPath("lintian"); err != nil {
		tier.Without(t, "lintian", err.Error())
	}
	call(t, ".", "lintian", "--allow-root", "--fail-on", "error,warning", file)
}

func checkRPM(t *testing.T, file, says string) {
	list := call(t, ".", "rpm", "-qpl", "--nosignature", file)
	for _, want := range append(packaged(), "/usr/share/doc/weir/LICENSE", "/usr/share/doc/weir", "/usr/share/doc/weir/html", "/etc/weir") {
		if !strings.Contains(list, want+"\n") {
			t.Errorf("%s is not in the package:\n%s", want, list)
		}
	}
	for tag, want := range map[string]string{
		"URL": "https://weir.example.org/", "PACKAGER": "weir <weir@example.org>", "LICENSE": "Apache-2.0",
		"CHANGELOGNAME": "weir <weir@example.org> - 1.2.3-1",
	} {
		if got := call(t, ".", "rpm", "-qp", "--nosignature", "--qf", "%{"+tag+"}", file); got != want {
			t.Errorf("%s is %q, want %q", tag, got, want)
		}
	}
	if needs := call(t, ".", "rpm", "-qpR", "--nosignature", file); !strings.Contains(needs, "/bin/sh\n") {
		t.Errorf("its scripts need a shell: %s", needs)
	}
	for kind, want := range map[string]string{"-d": "/usr/share/man/man5/weir-scenario.5.gz\n", "-L": "/usr/share/doc/weir/copyright\n"} {
		if got := call(t, ".", "rpm", "-qp", "--nosignature", kind, file); !strings.Contains(got, want) {
			t.Errorf("rpm -qp %s: %s", kind, got)
		}
	}
	const conffiles = "/etc/weir/agent.yaml\n/etc/weir/coordinator.yaml\n/etc/weir/serve.yaml\n"
	if kept := call(t, ".", "rpm", "-qpc", "--nosignature", file); kept != conffiles {
		t.Errorf("files that an upgrade keeps: %s", kept)
	}
	root := t.TempDir()
	call(t, ".", "rpm", "--root", root, "-i", "--nosignature", "--nodeps", "--noscripts", file)
	if got := call(t, root, "usr/bin/weir", "version"); got != says {
		t.Errorf("it says %q, want %q", got, says)
	}
}

// checkImage checks all digests with skopeo, and runs the program with no other files around it.
func checkImage(t *testing.T, file, says string) {
	dir := t.TempDir()
	call(t, dir, "skopeo", "copy", "--insecure-policy", "oci-archive:"+file, "dir:image")
	var about struct {
		Config struct {
			User       string
			Entrypoint []string
		}
	}
	text := call(t, dir, "skopeo", "inspect", "--config", "oci-archive:"+file)
	if err := json.Unmarshal([]byte(text), &about); err != nil || about.Config.User != "65532:65532" ||
		about.Config.Entrypoint[0] != "/usr/bin/weir" {
		t.Errorf("%v in %s", err, text)
	}
	var manifest struct{ Layers []struct{ Digest string } }
	text = call(t, dir, "cat", "image/manifest.json")
	if err := json.Unmarshal([]byte(text), &manifest); err != nil || len(manifest.Layers) != 1 {
		t.Fatalf("%v in %s", err, text)
	}
	root := t.TempDir()
	call(t, root, "tar", "xzf", filepath.Join(dir, "image", strings.TrimPrefix(manifest.Layers[0].Digest, "sha256:")))
	if os.Getuid() == 0 {
		if got := call(t, root, "chroot", "--userspec=65532:65532", root, "/usr/bin/weir", "version"); got != says {
			t.Errorf("it says %q, want %q", got, says)
		}
	}
}

// checkBill compares the bill with the modules that the program imports.
func checkBill(t *testing.T, text []byte) {
	var b bill
	require.NoError(t, json.Unmarshal(text, &b))
	listed := map[string]bool{}
	for _, c := range b.Components {
		listed[c.Name+"@"+c.Version] = true
	}
	mods := call(t, "../..", "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}", "./cmd/weir")
	n := 0
	for _, mod := range strings.Fields(mods) {
		n++
		if !listed[mod] {
			t.Errorf("%s is not in the bill", mod)
		}
	}
	if n < 20 || b.Metadata.Timestamp != "2026-01-31T12:00:00Z" {
		t.Errorf("%d modules, %v", n, b.Metadata)
	}
}

// The manifests for Kubernetes fit its schemas, and the configuration in them is valid for a
// coordinator, except that its certificate is not on this machine. There is no schema of the
// ServiceMonitor, which is a resource of Prometheus.
func TestKubernetes(t *testing.T) {
	validate := filepath.Join(labtest.Python(t), "kubernetes-validate")
	if _, err := os.Stat(validate); err != nil {
		tier.Without(t, "kubernetes-validate", "the Python packages are older than lab/python.txt: make needs")
	}
	cmd := exec.CommandContext(t.Context(), validate, "--strict", "../../deploy/kubernetes.yaml")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), " passed for resource ") != 6 || strings.Count(string(out), "WARN") != 1 ||
		!strings.Contains(string(out), "schema for kind ServiceMonitor") {
		t.Errorf("%v\n%s", err, out)
	}
	text, err := os.ReadFile("../../deploy/kubernetes.yaml")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "  coordinator.yaml: |\n")
	conf, _, found := strings.Cut(rest, "\n---\n")
	file := filepath.Join(t.TempDir(), "coordinator.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(conf, "    ", "")+"\n"), 0o644); err != nil || !found {
		t.Fatal(found, err)
	}
	check := exec.CommandContext(t.Context(), "go", "run", "./cmd/weir", "config", "check", "coordinator", file)
	check.Dir = "../.."
	said, _ := check.CombinedOutput() // go run has an exit code of its own
	absent := regexp.MustCompile(`: (cert|key): open /etc/weir/tls/tls\.(crt|key): no such file or directory$`)
	for line := range strings.Lines(string(said)) {
		if line = strings.TrimSpace(line); line != "" && line != "exit status 2" && !absent.MatchString(line) {
			t.Errorf("a mistake: %s", line)
		}
	}
}

// Releases that cannot be built are refused with the reason.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-version v1.2", "use MAJOR.MINOR.PATCH"},
		{"-version 1.2.3 -targets linux", "use OS/ARCH"},
		{"-version 1.2.3 -out /proc", "/proc"},
		{"-version 1.2.3 -maintainer weir", "use NAME <ADDRESS>"},
	} {
		err := run(t.Context(), strings.Fields(c.args), &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.args, err, c.want)
		}
	}
}

func TestSection(t *testing.T) {
	const log = "# Changelog\n\n## Unreleased\n\nnew\n\n## 1.2.3\n\n- first\n- second\n\n## 1.2.2\n\nold\n"
	for name, want := range map[string]string{"1.2.3": "- first\n- second", "Unreleased": "new", "1.2.2": "old", "1.2": "", "first": ""} {
		if got := section(log, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Items of lists become plain text; headings and introductions are left out.
func TestBullets(t *testing.T) {
	const text = "[Added](#added)\n\n### Added\n\nLoad tests:\n\n- `weir run`: steps\n  ([docs/lab.md](docs/lab.md)).\n" +
		"- two\n\nTransfers:\n\n- three\n"
	want := []string{"weir run: steps (docs/lab.md).", "two", "three"}
	if got := bullets(text); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The terms of the Apache license become a reference; a copyright notice and other licenses stay.
func TestWithoutApache(t *testing.T) {
	license := string(require.File(t, "../../LICENSE"))
	got := withoutApache("Copyright 2020 Somebody\n\n" + license + "\n\nBSD")
	if !strings.HasPrefix(got, "Copyright 2020 Somebody\n\n") || !strings.HasSuffix(got, "BSD") || strings.Contains(got, "Derivative Works") ||
		!strings.Contains(got, "/usr/share/common-licenses/Apache-2.0") {
		t.Error(got)
	}
}

// The configuration of the coordinator in packages approves nothing by itself, and is valid.
func TestPackagedCoordinator(t *testing.T) {
	text := string(require.File(t, "../../deploy/etc/coordinator.yaml"))
	if strings.Contains(text, "\napprove_up_to:") || !strings.Contains(text, "\n# approve_up_to: ") {
		t.Error(text)
	}
}
