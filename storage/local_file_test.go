package storage

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weir/internal/require"
)

func TestDest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "copy")
	for _, want := range []string{"a longer text", "short"} {
		op := Op{Kind: Read, Dest: path}
		d, err := op.OpenDest()
		require.NoError(t, err)
		half := len(want) / 2
		if _, err := d.WriteAt([]byte(want[half:]), int64(half)); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Write([]byte(want[:half])); err != nil {
			t.Fatal(err)
		}
		require.NoError(t, d.Close(nil))
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, []byte(want)) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestNoDest(t *testing.T) {
	d, err := (&Op{Kind: Read}).OpenDest()
	if d != nil || err != nil {
		t.Fatalf("%v, %v", d, err)
	}
	n, err := d.Write([]byte("abc"))
	m, aerr := d.WriteAt([]byte("abc"), 7)
	if n != 3 || m != 3 || err != nil || aerr != nil {
		t.Errorf("%d, %v, %d, %v", n, err, m, aerr)
	}
	if err := d.Close(ErrBusy); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	for _, op := range []Op{{Kind: Read, Dest: "x", Ranges: []Range{}}, {Kind: Write, Dest: "x"}, {Kind: Stat, Dest: "x"}} {
		if _, err := op.OpenDest(); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%v: %v", op.Kind, err)
		}
	}
}

// TestFullDest checks that writing to /dev/full fails like writing to a full disk.
func TestFullDest(t *testing.T) {
	link := filepath.Join(t.TempDir(), "full disk")
	require.NoError(t, os.Symlink("/dev/full", link))
	if _, err := os.Stat(link); err != nil {
		t.Skip(err)
	}
	d, err := (&Op{Kind: Read, Dest: link}).OpenDest()
	require.NoError(t, err)
	_, err = d.Write([]byte("abc"))
	if Classify(err) != Scratch || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), link) {
		t.Errorf("%v", err)
	}
	if err := d.Close(err); Classify(err) != Scratch {
		t.Error(err)
	}
	for _, path := range []string{"/nowhere/at/all", t.TempDir()} {
		_, err := (&Op{Kind: Read, Dest: path}).OpenDest()
		if Classify(err) != Scratch || !strings.Contains(err.Error(), path) {
			t.Errorf("%v", err)
		}
	}
}
