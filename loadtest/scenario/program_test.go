package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/storage"
)

func TestCommandJobMistakes(t *testing.T) {
	for name, c := range map[string]struct{ client, want string }{
		"dest":   {`client: {command: [cp, "{url}", "{dest}"]}`, "client.command: {dest}: not available to jobs"},
		"source": {`client: {command: [cp, "a{source}"]}`, "{source}: not available to jobs"},
		"offset": {`client: {command: [cp, "{url}+{offset}"]}`, "client.command: {offset}"},
	} {
		_, err := Parse("x.yaml", []byte("target: http://localhost/\nworkload: {kind: command-job}\n"+c.client+"\n"), nil, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "x.yaml:") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestCommandJobTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		work string
		want time.Duration
	}{
		"default": {"{kind: command-job}", time.Hour},
		"given":   {"{kind: command-job, timeout: 60s}", time.Minute},
		"others":  {"{kind: read}", time.Minute},
	} {
		s, err := Parse("x.yaml", []byte("target: http://localhost/\nclient: {command: [cat, \"{url}\"]}\nworkload: "+c.work+"\n"), nil, nil)
		if err != nil || time.Duration(s.Work.Timeout) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// A job starts in a folder of its own: files that its command names relative to the scenario are
// found from there, and nothing else is touched.
func TestCommandJobInputs(t *testing.T) {
	dir := t.TempDir()
	strange := filepath.Join(dir, "a{b}")
	for _, name := range []string{"analysis.py", "analysis.C", "run/job.sh", "a{b}/x.py"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	driver := storage.Driver{Name: "command", Kinds: []storage.Kind{storage.Read, storage.Run}}
	planned := func(folder, kind string, sets []string, command ...string) []string {
		t.Helper()
		text := "target: http://localhost/\nworkload: {kind: " + kind + "}\nclient: {command: ['" + strings.Join(command, "', '") + "']}\n"
		s, err := Parse(filepath.Join(folder, "x.yaml"), []byte(text), nil, sets)
		require.NoError(t, err)
		p, err := s.Plan([]storage.Driver{driver})
		require.NoError(t, err)
		return p.Command
	}
	check := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check(planned(dir, "command-job", nil, "python3", "analysis.py", "{url}", "other.py", "run", "-analysis.py"),
		"python3", dir+"/analysis.py", "{url}", "other.py", "run", "-analysis.py")
	check(planned(dir, "command-job", nil, "root", "-b", `analysis.C+("{url}")`, "analysis.C++"), "root", "-b", dir+`/analysis.C+("{url}")`,
		dir+"/analysis.C++")
	check(planned(dir, "command-job", nil, "./run/job.sh", "{url}"), dir+"/run/job.sh", "{url}")
	check(planned(dir, "command-job", nil, "analysis.py", "{url}"), "analysis.py", "{url}")
	check(planned(strange, "command-job", nil, "python3", "x.py"), "python3", dir+"/a{{b}}/x.py")
	check(planned(dir, "read", nil, "python3", "analysis.py", "{url}"), "python3", "analysis.py", "{url}")
	t.Chdir(dir)
	check(planned("", "command-job", nil, "python3", "analysis.py"), "python3", dir+"/analysis.py")
	check(planned("/nowhere", "command-job", []string{"client.command=[python3, analysis.py]"}, "cat"), "python3", dir+"/analysis.py")
}
