package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"weir/internal/redact"
	"weir/internal/require"
)

// The address of a database comes from only one place, and a warning is printed if an address on
// the command line contains a password.
func TestDatabaseFlags(t *testing.T) {
	const secret = "postgres://weir:hush@db.example.org/weir"
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for _, c := range []struct {
		args      []string
		env       string
		want      string
		warn, err string
	}{
		{},
		{env: secret, want: secret},
		{args: []string{"--db", "weir.db"}, env: secret, want: "weir.db"},
		{args: []string{"--db-file", put("a", secret+"\n")}, env: "other.db", want: secret},
		{args: []string{"--db", secret}, want: secret, warn: "can see the password"},
		{args: []string{"--db", "postgres://weir@db.example.org/weir?password=hush"}, want: "postgres://weir@db.example.org/weir?password=hush",
			warn: "can see the password"},
		{args: []string{"--db", "postgres://weir@db.example.org/weir"}, want: "postgres://weir@db.example.org/weir"},
		{args: []string{"--db", "a.db", "--db-file", "b"}, err: "choose one"},
		{args: []string{"--db-file", put("b", "")}, err: "one line"},
		{args: []string{"--db-file", put("c", secret+"\n"+secret)}, err: "one line"},
		{args: []string{"--db-file", filepath.Join(dir, "none")}, err: "no such file"},
	} {
		t.Setenv("WEIR_DB", c.env)
		var f dbFlags
		var command cobra.Command
		f.add(&command, "db", "WEIR_DB")
		require.NoError(t, command.ParseFlags(c.args))
		var said bytes.Buffer
		got, err := f.find(streams{err: &said})
		if got != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %q, %v", c.args, got, err)
		}
		if (c.warn == "") != (said.Len() == 0) || !strings.Contains(said.String(), c.warn) || strings.Contains(said.String(), "hush") {
			t.Errorf("%q: it says %q", c.args, said.String())
		}
	}
	kept := redact.Args([]string{"weir", "--db=" + secret, "--db", secret, "--scale=seed", "a=b.yaml"})
	if want := []string{"weir", "--db=postgres://weir:REDACTED@db.example.org/weir", "--db", "postgres://weir:REDACTED@db.example.org/weir",
		"--scale=seed", "a=b.yaml"}; !slices.Equal(kept, want) {
		t.Errorf("%q", kept)
	}
}
