package token

import (
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
)

func claimsOf(t *testing.T, text string) *Claims {
	t.Helper()
	scopes, words, err := readScopes(text)
	require.NoError(t, err)
	return &Claims{scopes: scopes, words: words}
}

func TestPathRules(t *testing.T) {
	for _, tt := range []struct {
		scope string
		yes   []string // "OP PATH"
		no    []string
	}{
		{"storage.read:/foo",
			[]string{"read /foo", "read /foo/bar", "stat /foo", "list /foo", "read /foo/"},
			[]string{"read /", "read /foobar", "read /fo", "read /FOO", "create /foo/x", "folder /foo/x", "modify /foo", "read /foo/../bar",
				"read /foo//bar", "read foo", "read /foo/./x", `read /foo\x`, "read /foo/x\x00"}},
		{"storage.create:/foo/bar", // the profile's own examples
			[]string{"folder /foo", "folder /foo/bar", "create /foo/bar", "create /foo/bar/qux", "folder /foo/bar/qux", "stat /foo/bar", "folder /"},
			[]string{"create /foo", "folder /foo/bargain", "create /foo/bargain", "modify /foo/bar", "read /foo/bar", "list /foo/bar", "stat /foo",
				"folder /fo"}},
		{"storage.create:/foo/bar/",
			[]string{"folder /foo/bar", "create /foo/bar/x", "create /foo/bar/", "stat /foo/bar"},
			[]string{"create /foo/bar"}},
		{"storage.modify:/a",
			[]string{"modify /a", "create /a/b", "folder /a/b", "stat /a", "list /a"},
			[]string{"read /a", "modify /", "modify /ab"}},
		{"storage.stage:/a", []string{"stat /a"}, []string{"read /a", "create /a"}},
		{"storage.poll:/a", nil, []string{"stat /a", "read /a"}},
		{"storage.read:/", []string{"read /x", "list /", "read /x/y"}, []string{"create /x"}},
		{"storage.read:/a%20b", []string{"read /a b"}, []string{"read /a%20b"}},
		{"storage.read:/a storage.create:/b", []string{"read /a", "create /b"}, []string{"create /a", "read /b"}},
		{"storage.delete:/a compute.create openid", nil, []string{"modify /a", "stat /a"}},
		{"Storage.read:/a", nil, []string{"read /a"}},
		{"", nil, []string{"stat /", "read /"}},
	} {
		c := claimsOf(t, tt.scope)
		for _, want := range [][]string{tt.yes, tt.no} {
			for _, line := range want {
				op, path, _ := strings.Cut(line, " ")
				if got := c.May(opCalled(op), path); got != slices.Contains(tt.yes, line) {
					t.Errorf("%q: %q is %v", tt.scope, line, got)
				}
			}
		}
	}
}

func opCalled(name string) Op {
	return Op(slices.Index([]string{"stat", "read", "list", "create", "folder", "modify"}, name))
}

// An issuer's paths begin at its folder, and end there.
func TestBase(t *testing.T) {
	c := claimsOf(t, "storage.read:/ storage.create:/stageout")
	c.base = "/vo"
	for path, want := range map[string]bool{"/vo/f": true, "/vo": true, "/f": false, "/vof": false, "/": false} {
		if c.May(Read, path) != want {
			t.Errorf("read %s is not %v", path, want)
		}
	}
	if !c.May(Create, "/vo/stageout/f") || c.May(Create, "/stageout/f") {
		t.Error("create is wrong")
	}
}

func FuzzScopes(f *testing.F) {
	f.Add("storage.read:/a storage.create:/b%2fc", "/a/b")
	f.Add("storage.modify:/a/", "/a")
	f.Fuzz(func(t *testing.T, text, path string) {
		scopes, words, err := readScopes(text)
		if err != nil {
			return
		}
		c := &Claims{scopes: scopes, words: words}
		for op := Stat; op <= Modify; op++ {
			if c.May(op, path) && (strings.Contains(path, "..") && slices.Contains(strings.Split(path, "/"), "..") ||
				!strings.HasPrefix(path, "/")) {
				t.Errorf("%q allows %q", text, path)
			}
			if len(scopes) == 0 && c.May(op, path) {
				t.Errorf("%q allows %q", text, path)
			}
		}
	})
}
