package mover

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/labtest"
	"weir/transfer"
)

func TestDestinationsThatDoNotTakeIt(t *testing.T) {
	from := newSite(t, nil)
	const size = 100_000
	sum := file(t, from.dir, "f", 1, size)
	long := strings.Repeat("x", 300)
	for what, c := range map[string]struct {
		path  string
		make  func(root string) error
		fault transfer.ErrorClass
	}{
		"another file": {"f", func(root string) error { return os.WriteFile(filepath.Join(root, "f"), make([]byte, size), 0o600) },
			transfer.Occupied},
		"a shorter file": {"f", func(root string) error { return os.WriteFile(filepath.Join(root, "f"), nil, 0o600) }, transfer.Occupied},
		"a folder":       {"f", func(root string) error { return os.Mkdir(filepath.Join(root, "f"), 0o700) }, transfer.Occupied},
		"a link out of the root": {"f", func(root string) error { return os.Symlink("/etc/passwd", filepath.Join(root, "f")) },
			transfer.Occupied},
		"a link to nothing": {"f", func(root string) error { return os.Symlink("nothing", filepath.Join(root, "f")) }, transfer.Occupied},
		"a file for a folder": {"a/b/f", func(root string) error { return os.WriteFile(filepath.Join(root, "a"), nil, 0o600) },
			transfer.Occupied},
		"a link for a folder": {"a/f", func(root string) error { return os.Symlink("/tmp", filepath.Join(root, "a")) }, transfer.Permanent},
		"a long name":         {long, nil, transfer.Permanent},
		"a long folder":       {long + "/f", nil, transfer.Permanent},
		"a way out":           {"../f", nil, transfer.Permanent},
		"an absolute path":    {"/f", nil, transfer.Permanent},
		"no name":             {"", nil, transfer.Permanent},
		"the hidden folder":   {Hidden + "/8.1.part", nil, transfer.Permanent},
	} {
		t.Run(what, func(t *testing.T) {
			m := newMover(t, Options{})
			if c.make != nil {
				require.NoError(t, c.make(m.opt.Root))
			}
			before := tree(t, m.opt.Root)
			l := pullLease(from.url, "f", sum, size)
			l.Dest.Path = c.path
			out := do(t, m, l)
			failed(t, out, c.fault)
			if strings.Contains(out.Reason, m.opt.Root) {
				t.Error("the reason tells where on this machine the site is")
			}
			if after := tree(t, m.opt.Root); after != before {
				t.Errorf("before\n%safter\n%s", before, after)
			}
			noParts(t, m)
		})
	}
}

// tree lists the files below a folder, except the folder of temporaries.
func tree(t *testing.T, root string) string {
	t.Helper()
	out, err := exec.Command("find", root, "-path", filepath.Join(root, Hidden), "-prune", "-o", "-printf", "%P %y %s %l\n").Output()
	require.NoError(t, err)
	return string(out)
}

// TestFolders: all folders are made, also if they are removed in between.
func TestFolders(t *testing.T) {
	from := newSite(t, nil)
	sum := file(t, from.dir, "a/b/c/f", 1, 1000)
	m := newMover(t, Options{})
	for range 2 {
		l := pullLease(from.url, "a/b/c/f", sum, 1000)
		arrived(t, m, filepath.Join(from.dir, "a/b/c/f"), l, do(t, m, l))
		require.NoError(t, os.RemoveAll(filepath.Join(m.opt.Root, "a")))
	}
	require.NoError(t, os.RemoveAll(filepath.Join(m.opt.Root, Hidden)))
	l := pullLease(from.url, "a/b/c/f", sum, 1000)
	arrived(t, m, filepath.Join(from.dir, "a/b/c/f"), l, do(t, m, l))
}

// inside runs a mover in a mount namespace of its own, in which mount sets up root, and returns the
// outcomes.
func inside(t *testing.T, root, mount string, leases ...transfer.Lease) []transfer.Outcome {
	t.Helper()
	labtest.Need(t, "unshare", "mount")
	text, err := json.Marshal(job{Root: root, Leases: leases, Together: 1})
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "job")
	require.NoError(t, os.WriteFile(name, text, 0o600))
	cmd := exec.CommandContext(t.Context(), "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount+` && exec "$0"`, os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"=move:"+name)
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "unshare failed") {
		tier.Without(t, "user namespaces", string(out))
	}
	_, lines, _ := strings.Cut(string(out), "begun\n")
	var all []transfer.Outcome
	for d := json.NewDecoder(strings.NewReader(lines)); ; {
		var o transfer.Outcome
		if decodeErr := d.Decode(&o); decodeErr == io.EOF {
			break
		} else if decodeErr != nil {
			t.Fatalf("%s: %v, %v", out, decodeErr, err)
		}
		all = append(all, o)
	}
	if len(all) != len(leases) {
		t.Fatalf("%d outcomes: %s", len(all), out)
	}
	return all
}

// TestDiskFull: detected before the attempt begins, or in the middle.
func TestDiskFull(t *testing.T) {
	const size = 12 << 20
	from := newSite(t, nil)
	sum := file(t, from.dir, "f", 1, size)
	small := file(t, from.dir, "small", 2, 1000)
	root := t.TempDir()
	mount := "mount -t tmpfs -o size=8m none " + root
	out := inside(t, root, mount, pullLease(from.url, "f", sum, size), pullLease(from.url, "small", small, 1000))
	failed(t, out[0], transfer.DestFull)
	if out[1].Fault != "" {
		t.Errorf("a small file: %+v", out[1])
	}
	// there is space, and a limit on the size of files ends the attempt in the middle
	limit := "trap '' XFSZ; ulimit -f 8192; mount -t tmpfs -o size=64m none " + root
	o := inside(t, root, limit, pullLease(from.url, "f", sum, size))[0]
	failed(t, o, transfer.DestFull)
	if o.Moved == 0 {
		t.Errorf("refused before the attempt: %+v", o)
	}
}

// TestReadOnly: the site's folder is mounted read-only.
func TestReadOnly(t *testing.T) {
	from := newSite(t, nil)
	sum := file(t, from.dir, "f", 1, 1000)
	root := t.TempDir()
	mount := "mount -t tmpfs none " + root + " && mkdir " + root + "/.weir " + root + "/ro && mount -t tmpfs -o ro none " + root + "/ro"
	l := pullLease(from.url, "f", sum, 1000)
	l.Dest.Path = "ro/f"
	out := inside(t, root, mount, l)
	failed(t, out[0], transfer.Permanent) // it is another file system
	l.Dest.Path = "ro/new/f"
	failed(t, inside(t, root, mount, l)[0], transfer.Denied)
}
