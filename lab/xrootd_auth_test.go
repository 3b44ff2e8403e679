package lab_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

// client runs a real client that gives up early and returns its output.
func client(t *testing.T, env []string, argv ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "XRD_CONNECTIONRETRY=1", "XRD_REQUESTTIMEOUT=10"}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// there checks that the real xrdcp writes a file below url and reads it back.
func there(t *testing.T, s *lab.System, url, name string) {
	t.Helper()
	want, dir := payload(), t.TempDir()
	local, back := filepath.Join(dir, "local"), filepath.Join(dir, "back")
	require.NoError(t, os.WriteFile(local, want, 0o600))
	for _, argv := range [][]string{{local, url + "/" + name}, {url + "/" + name, back}} {
		if out, err := client(t, s.Env, "xrdcp", "-s", argv[0], argv[1]); err != nil {
			t.Fatalf("xrdcp %v: %v\n%s", argv, err, out)
		}
	}
	same(t, back, want)
}

// refused checks that xrdcp cannot write below url with variables added to, or replaced in, the
// variables of s.
func refused(t *testing.T, s *lab.System, url, why string, env []string, words ...string) {
	t.Helper()
	out, err := client(t, append(s.Env[:len(s.Env):len(s.Env)], env...), "xrdcp", "-f", "-s", "/etc/hostname", url+"/refused")
	if err == nil {
		t.Errorf("%s: a file was written to %s", why, url)
	}
	for _, w := range words {
		if strings.Contains(out, w) {
			return
		}
	}
	t.Errorf("%s: the client says none of %q: %s", why, words, out)
}

// wrongCredentials returns variables that make a client's credentials wrong, by the kind of fault,
// with the words in the client's output.
func wrongCredentials(t *testing.T, s *lab.System) map[string][]string {
	t.Helper()
	must := func(file string, err error) string {
		t.Helper()
		require.NoError(t, err)
		return file
	}
	switch s.Auth {
	case "krb5":
		return map[string][]string{
			"no ticket":      {"KRB5CCNAME=FILE:/nonexistent"},
			"expired ticket": {"KRB5CCNAME=FILE:" + must(s.TicketFor(t.Context(), 0))},
		}
	case "gsi":
		_, dir, err := s.WrongCA()
		must("", err)
		alone := func(proxy string) []string {
			return []string{"X509_USER_CERT=/nonexistent", "X509_USER_KEY=/nonexistent", "X509_USER_PROXY=" + proxy}
		}
		return map[string][]string{
			"no proxy":          alone("/nonexistent"),
			"expired proxy":     alone(must(s.ProxyFor(-time.Minute))),
			"another authority": {"X509_CERT_DIR=" + dir},
		}
	case "ztn":
		_, dir, err := s.WrongCA()
		must("", err)
		broken, err := s.BrokenToken()
		must("", err)
		return map[string][]string{
			"no token":          {"BEARER_TOKEN_FILE=/nonexistent"},
			"expired token":     {"BEARER_TOKEN_FILE=" + must(s.TokenFor(-time.Minute, ""))},
			"another signature": {"BEARER_TOKEN=" + broken},
			"only for reading":  {"BEARER_TOKEN_FILE=" + must(s.TokenFor(time.Minute, "storage.read:/"))},
			"for another path":  {"BEARER_TOKEN_FILE=" + must(s.TokenFor(time.Minute, "storage.modify:/sub storage.create:/sub"))},
			"another authority": {"X509_CERT_DIR=" + dir},
		}
	}
	return nil
}

// The messages of clients that are refused.
func refusals() []string {
	return []string{"Auth failed", "No protocols left", "TLS error", "not authorized", "Unable to open", "permission denied", "access denied"}
}

func TestXRootDAuth(t *testing.T) {
	labtest.Need(t, "xrdcp")
	for _, auth := range lab.XRootDAuths() {
		t.Run(auth, func(t *testing.T) {
			s := labtest.Start(t, lab.XRootDConfig{Auth: auth})
			there(t, s, s.URL, "file")
			same(t, filepath.Join(s.Data, "file"), payload())
			for why, env := range wrongCredentials(t, s) {
				refused(t, s, s.URL, why, env, refusals()...)
			}
			gone(t, s)
		})
	}
}

func TestClusterAuth(t *testing.T) {
	labtest.Need(t, "xrdcp")
	for _, auth := range lab.XRootDAuths()[1:] {
		t.Run(auth, func(t *testing.T) {
			t.Parallel()
			s := labtest.Start(t, lab.XRootDConfig{Auth: auth, Servers: 2, Config: lab.Config{TLS: auth != "krb5"}})
			there(t, s, s.URL, "file")
			if auth != "krb5" && auth != "ztn" {
				there(t, s, s.URLs["roots"], "tls")
			}
			for why, env := range wrongCredentials(t, s) {
				for _, server := range s.Servers {
					url := server.URL
					if auth == "ztn" {
						url = strings.NewReplacer("root://127.0.0.1", "roots://localhost").Replace(url)
					}
					refused(t, s, url, server.Name+": "+why, env, refusals()...)
				}
			}
			gone(t, s)
		})
	}
}

// named reports whether a process has a folder in its arguments or its environment.
func named(dir string) bool {
	for _, pattern := range []string{"/proc/[0-9]*/cmdline", "/proc/[0-9]*/environ"} {
		all, _ := filepath.Glob(pattern)
		for _, f := range all {
			if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), dir) {
				return true
			}
		}
	}
	return false
}

// A client that chooses its name at each login is admitted by name only.
func TestUnixLetsOneUserIn(t *testing.T) {
	s := labtest.Start(t, lab.XRootDConfig{Auth: "unix"})
	for _, c := range []struct {
		user string
		ok   bool
	}{{s.User, true}, {"nobody-else", false}} {
		conn, err := lab.Dial(t.Context(), s.Servers[0].Address, nil)
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, lab.Greet(conn))
		if _, err := lab.XRDRequest(conn, lab.XRDLogin, [16]byte{4: 'w', 14: 4}, ""); err != nil {
			t.Fatal(err)
		}
		const auth, mkdir = 3000, 3008
		if _, err := lab.XRDRequest(conn, auth, [16]byte{12: 'u', 13: 'n', 14: 'i', 15: 'x'}, "unix\x00"+c.user+"\x00"); err != nil {
			t.Fatal(err)
		}
		_, err = lab.XRDRequest(conn, mkdir, [16]byte{14: 1, 15: 0xed}, "/data/of-"+c.user)
		if (err == nil) != c.ok {
			t.Errorf("user %s makes a folder: %v", c.user, err)
		}
	}
}

// gone stops s and checks that nothing of it is left.
func gone(t *testing.T, s *lab.System) {
	t.Helper()
	pids, ports := s.Pids(), s.Ports()
	require.NoError(t, s.Stop())
	for _, pid := range pids {
		if lab.Alive(pid) {
			t.Errorf("process group %d lives on", pid)
		}
	}
	if len(pids) == 0 || len(ports) == 0 {
		t.Errorf("there was nothing to end: processes %v, ports %v", pids, ports)
	}
	for _, p := range ports {
		if err := lab.AskListener(p.Address())(t.Context()); err == nil && named(s.Dir) { // or another test has the port now
			t.Errorf("port %v is still open", p)
		}
	}
	if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
		t.Errorf("folder %s lives on: %v", s.Dir, err)
	}
	elsewhere, _ := filepath.Glob("/tmp/*.env") // the folder in which XRootD may write the environment of its start
	for _, f := range elsewhere {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), s.Dir) {
			t.Errorf("it left %s: %s", f, b)
		}
	}
}
