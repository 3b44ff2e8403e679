package main

import (
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"weir/internal/document/documenttest"
	"weir/internal/require"
	"weir/transfer"
	"weir/transfer/trial"
)

// put writes a file into dir.
func put(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// The check accepts the examples, and the schema accepts them with all commented lines included.
func TestConfigExamples(t *testing.T) {
	t.Parallel()
	for _, command := range configCommands() {
		_, schema := weir(t, "config", "schema", command)
		_, example := weir(t, "config", "example", command)
		dir := t.TempDir()
		for _, name := range []string{"serve.token", "a.token"} {
			put(t, dir, name, "x")
		}
		(&issuer{t: t, dir: dir}).sign("host", &x509.Certificate{})
		file := put(t, dir, command+".yaml", strings.ReplaceAll(strings.ReplaceAll(example, "/data/a", dir), "/data", dir))
		if code, said := weir(t, "config", "check", command, file); code != exitFine {
			t.Errorf("%s: %d\n%s", command, code, said)
		}
		commented := regexp.MustCompile(`(?m)^( *)# ( *(?:- )?[a-z_@.]+:.*)$`)
		validate(t, schema, commented.ReplaceAllString(example, "$1$2"), true)
		validate(t, schema, example+"\nlisten_at: x\n", false)
	}
}

func validate(t *testing.T, schema, text string, valid bool) {
	t.Helper()
	err := documenttest.Compile(t, []byte(schema)).Validate([]byte(text))
	if _, refused := errors.AsType[*jsonschema.ValidationError](err); err != nil && !refused {
		t.Fatalf("%v\n%s", err, text)
	}
	if (err == nil) != valid {
		t.Errorf("%v\n%s", err, text)
	}
}

// Each mistake is reported with its position and a correction. No secret is repeated.
func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "empty", "")
	put(t, dir, "text", "x")
	for _, c := range []struct{ command, text, place, says string }{
		{"coordinator", "lisen: x", "1:1", "did you mean listen?"},
		{"coordinator", "state: [a, b]", "1:8", "write one value"},
		{"coordinator", "link_max: many", "1:11", "whole number"},
		{"coordinator", "url: https://weir.example\nlease: 5x", "2:8", "use a time of 2s or more"},
		{"coordinator", "link_min: 5\nlink_max: 2", "2:11", "the larger one"},
		{"coordinator", "approve_up_to: lots", "1:16", "approve_up_to"},
		{"coordinator", "cert: c.pem", "1:7", "must be given together"},
		{"coordinator", "shares: {a: 0}", "1:13", "above 0"},
		{"coordinator", "names: {alice: [submit, fly]}", "1:25", "use read, submit, approve or admin"},
		{"coordinator", "db: postgres://weir:hush@db/weir", "1:5", "db_file"},
		{"coordinator", "sites:\n  - name: A\n    token: hush", "3:5", "token_file"},
		{"coordinator", "sites:\n  - {name: A, url: \"https://u:hush@a.example/\"}", "2:20", "leave user and password out"},
		{"coordinator", "sites:\n  - {name: A, url: \"https://a.example/\", token_file: empty}", "2:54", "is empty"},
		{"coordinator", "sites:\n  - {name: A, url: \"https://a.example/\", token_variable: WEIR_NONE_SUCH}", "2:58", "the environment has no"},
		{"coordinator", "sites:\n  - {name: \"A B\", url: \"https://a.example/\"}", "2:6", "letters, digits"},
		{"coordinator", "tokens: [{name: alice, roles: [submit]}]", "1:11", "name the file"},
		{"coordinator", "tokens: [{site: A, roles: [fly], file: x}]", "1:28", "unknown roles"},
		{"coordinator", "notify: [{name: x, on: [done], webhook: \"https://a.example/hush\"}]", "1:25", "use one of completed"},
		{"coordinator", "notify: [{name: x, webhook: \"https://169.254.169.254/hush\", private: true}]", "1:11", "not allowed"},
		{"coordinator", "notify: [{name: x, webhook: \"http://a.example/hush\"}]", "1:11", "https only"},
		{"coordinator", "notify: [{name: x, mail: [nobody]}]", "1:11", "mail address"},
		{"coordinator", "notify: [{name: x, mail: [a@b.example]}, {name: x, command: [x]}]", "1:49", "another target"},
		{"coordinator", "broker: {urls: [\"stomp://weir:hush@b.example:61613\"]}", "1:10", "leave user and password out"},
		{"coordinator", "broker: {urls: [\"amqp://b.example:5672\"]}", "1:10", "stomp+ssl://HOST:PORT"},
		{"coordinator", "broker: {urls: [\"stomp://b.example:61613\"], user: weir}", "1:10", "together"},
		{"coordinator", "broker: {urls: [\"stomp://b.example:61613\"], password: hush}", "1:45", "password_file"},
		{"coordinator", "broker: {user: weir}", "1:10", "name the broker"},
		{"coordinator", "notify: [{name: x, command: [sh, \"{subject}\"]}]", "1:11", "{subject}"},
		{"coordinator", "notify: [{name: x, command: [\"sh-{type}\"]}]", "1:11", "{type}"},
		{"coordinator", "notify: [{name: x, command: [/nowhere/page, \"{text}\"]}]", "1:29", "/nowhere/page"},
		{"coordinator", "notify: [{name: x, webhook: \"https://a.example/hush\", ca_file: nowhere}]", "1:64", "no such file"},
		{"coordinator", "keep: 3d", "1:7", "use a time of 7d or more, such as 14d"},
		{"coordinator", "keep_endpoints: 5m", "1:17", "use a time of 1h or more, such as 2h"},
		{"coordinator", "db_file: nowhere", "1:10", "no such file"},
		{"coordinator", "db_file: empty", "1:10", "one line"},
		{"coordinator", "db: mysql://db/weir", "1:5", "no such kind of database"},
		{"coordinator", "cert: nowhere\nkey: text", "1:7", "no such file"},
		{"coordinator", "cert: text\nkey: text", "1:7", "PEM"},
		{"coordinator", "client_ca: text", "1:12", "PEM"},
		{"coordinator", "site_ca: nowhere", "1:10", "no such file"},
		{"coordinator", "listen: 9443", "1:9", "HOST:PORT"},
		{"coordinator", "plain: true\nlisten: 0.0.0.0:9443", "2:9", "loopback"},
		{"coordinator", "broker: {urls: [\"stomp://b.example:61613\"], ca_file: nowhere}", "1:10", "no such file"},
		{"coordinator", "tokens: [{site: A, file: text}]", "1:11", "name another file"},
		{"coordinator", "tokens: [{site: \"A B\", file: x}]", "1:11", "A B"},
		{"coordinator", "- a", "1:1", "map of keys"},
		{"coordinator", "a: [", "1:4", "not YAML"},
		{"coordinator", "", "1:1", "empty"},
		{"agent", "site: A\nroot: nowhere", "2:7", "existing folder"},
		{"agent", "site: A\nroot: .\nslots: 0", "3:8", "use 1 or more"},
		{"agent", "site: A\nroot: .\nno_endpoint: perhaps", "3:14", "true or false"},
		{"agent", "while_stdin: true", "1:1", "unknown key"},
		{"agent", "site: A\nroot: .\ntoken_file: nowhere", "3:13", "no such file"},
		{"agent", "site: A\nroot: .\ntoken_file: empty", "3:13", "is empty"},
		{"agent", "site: A\nroot: .\ncoordinator_ca: nowhere", "3:17", "no such file"},
		{"agent", "site: A\nroot: .\ncoordinator: \"https://a.example:9443#12\"", "3:14", "64 hexadecimal digits"},
		{"agent", "site: A\nroot: .\ncert: nowhere\nkey: nowhere", "3:7", "no such file"},
		{"agent", "site: A B\nroot: .", "1:7", "letters, digits"},
		{"serve", "dir: nowhere", "1:6", "no such file"},
		{"serve", "dir: .\ntoken_file: nowhere", "2:13", "no such file"},
		{"serve", "dir: .\nrate: fast", "2:7", "rate"},
		{"serve", "dir: .\ntpc_allow: a.example", "2:12", "write a list"},
		{"serve", "dir: .\npassword: hush", "2:1", "password_file"},
		{"serve", "dir: .\ndelay: soon", "2:8", "delay"},
	} {
		file := put(t, dir, "c.yaml", c.text)
		code, said := weir(t, "config", "check", c.command, file)
		if code != exitUsage || !strings.Contains(said, file+":"+c.place+": ") || !strings.Contains(said, c.says) ||
			strings.Contains(said, "hush") {
			t.Errorf("%q: %d\n%s", c.text, code, said)
		}
	}
	if code, said := weir(t, "config", "check", "agent", filepath.Join(dir, "none.yaml")); code != exitUsage ||
		!strings.Contains(said, "no such file") {
		t.Errorf("%d\n%s", code, said)
	}
	if code, said := weir(t, "config", "schema", "run"); code != exitUsage || !strings.Contains(said, "coordinator, agent, serve") {
		t.Errorf("%d\n%s", code, said)
	}
}

// All mistakes of a file are reported at once, each once, and none that only follows from another one.
func TestConfigMistakesAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for command, text := range map[string]string{
		"coordinator": `
lisen: x            # mistake
lease: 5x           # mistake
link_min: 5
link_max: 2         # mistake
cert: nowhere.pem   # mistake
key: nowhere.key    # mistake
db_file: nowhere    # mistake
names: {alice: [submit, fly]} # mistake
sites:
  - {name: "A B", url: "ftp://x"} # mistake, mistake
  - {name: C, url: "ftp://x", max: many, token_file: nowhere} # mistake, mistake, mistake
issuers:
  - {url: "https://iam.example/", client_id: a, client_secret_file: nowhere} # mistake
notify:
  - {name: x, on: [done], command: [sh, "{subject}"], timeout: 1h} # mistake, mistake, mistake
broker: {urls: ["stomp://b.example:61613"], user: weir, password_file: nowhere} # mistake
`,
		"agent": `
site: [A]           # mistake
rot: /data          # mistake
token_file: nowhere # mistake
slots: 0            # mistake
`,
		"serve": `
dri: .              # mistake
cert: nowhere.pem   # mistake, mistake
issuer: https://a/  # mistake
issuer_keys: nowhere
`,
	} {
		file := put(t, dir, command+".yaml", text)
		code, said := weir(t, "config", "check", command, file)
		var found, want []string
		for place := range strings.SplitSeq(strings.TrimPrefix(said, "weir: "), "\n") {
			if number := regexp.MustCompile(`\.yaml:(\d+):`).FindStringSubmatch(place); number != nil {
				found = append(found, number[1])
			}
		}
		for i, line := range strings.Split(text, "\n") {
			want = append(want, slices.Repeat([]string{strconv.Itoa(i + 1)}, strings.Count(line, "mistake"))...)
		}
		if code != exitUsage || !slices.Equal(found, want) {
			t.Errorf("%s: %d, lines %v, want %v\n%s", command, code, found, want, said)
		}
		if code, same := weir(t, command, "--config", file); code != exitUsage || same != said {
			t.Errorf("%s: %d\n%s", command, code, same)
		}
	}
}

// Flags override the file, and settings that are in neither keep their defaults. Paths are relative
// to the file.
func TestConfigAndFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	(&issuer{t: t, dir: dir}).sign("ca", &x509.Certificate{})
	file := put(t, dir, "agent.yaml", "site: A\nroot: .\nslots: 7\nclient: [a, b]\nclient_ca: ca.pem\nallow_private: "+
		"true\ntpc_allow: [x.example]")
	c, f, check, err := configOf("agent")
	require.NoError(t, err)
	require.NoError(t, c.ParseFlags([]string{"--config", file, "--slots", "9", "--client", "c"}))
	require.NoError(t, loadConfig(c, f, check))
	for name, want := range map[string]string{
		"site": "A", "root": dir, "slots": "9", "client": "[c]", "client-ca": filepath.Join(dir, "ca.pem"), "allow-private": "true",
		"tpc-allow": "[x.example]", "listen": "127.0.0.1:0",
	} {
		if got := c.Flags().Lookup(name).Value.String(); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	if !c.Flags().Changed("allow-private") {
		t.Error("what the file gives does not count as given")
	}
}

// A coordinator with predefined sites and tokens, agents and a server are all configured by files.
// A dataset is copied, and copied once more after a restart with the same files.
func TestConfiguredService(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "hook.token", "x")
	file := put(t, dir, "coordinator.yaml", `
lease: 30s
approve_up_to: 1GB
shares: {production: 3}
sites:
  - {name: far, url: "https://127.0.0.1:1/data", token_file: hook.token, max: 3}
tokens:
  - {name: alice, roles: [submit, read], life: 10d, file: tokens/alice}
  - {site: A, file: tokens/a}
`)
	agent := put(t, dir, "agent.yaml", "slots: 3\nmax_file: 1GB\ntoken_file: tokens/a\n")
	r := rooms(t, trial.Options{
		Coordinator: []string{"--config", file}, Sites: []trial.Site{{Name: "A", Args: []string{"--config", agent}}, {Name: "B"}},
	})
	files := trial.Files("/store/run1", 5, 10_000)
	r.fills("A", "/store/run1", files...)
	alice := filepath.Join(dir, "tokens", "alice")
	before, err := os.ReadFile(alice)
	require.NoError(t, err)
	if info, err := os.Stat(alice); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	submit := words("transfer submit /store/run1 --to B --wait --token-file " + alice)
	r.wants(exitFine, submit, "5 of 5 files")
	r.wants(exitFine, words("site show far"), "127.0.0.1:1/data")
	if code, _, _ := r.weir(words("site remove far --token-file " + alice)...); code == exitFine {
		t.Error("alice may remove sites")
	}
	require.NoError(t, r.Coordinator().Restart(t.Context()))
	require.NoError(t, r.Ready(t.Context()))
	if after, err := os.ReadFile(alice); err != nil || string(after) != string(before) {
		t.Error("a valid token was replaced", err)
	}
	r.completes(r.submits(transfer.Submission{Dataset: "/store/run1", To: "B"}), files...)

	put(t, dir, "data/f", "content")
	n := newNewcomer(t)
	serve := put(t, dir, "serve.yaml", "dir: data\nlisten: 127.0.0.1:0\nmax_file: 1MB\n")
	if _, said := n.stays("weir serve --max-file 2MB --config " + serve); !strings.HasPrefix(said, "serving http://127.0.0.1:") {
		t.Error(said)
	}
}
