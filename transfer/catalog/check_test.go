package catalog

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzCheck checks that a file which Check returns passes Check unchanged, and can be shown on one
// line.
func FuzzCheck(f *testing.F) {
	f.Add("/a/b", "b1", int64(5), "ABC", "sha256=FF,md5=0a")
	f.Add("/a/../b", "", int64(-1), "x", "=")
	f.Add("/\xff", "\n", int64(0), "123456789", "a=b,,")
	f.Add("/a", "", int64(0), "", "md5=aa,md5=bb")
	f.Fuzz(func(t *testing.T, name, block string, size int64, sum, more string) {
		got, err := Check(File{Name: name, Block: block, Size: size, Adler: sum, More: more})
		if err != nil {
			if !errors.Is(err, ErrBad) || !utf8.ValidString(err.Error()) || strings.ContainsAny(err.Error(), "\n\r\x00\x1b") {
				t.Errorf("%q", err)
			}
			return
		}
		if again, err := Check(got); err != nil || again != got {
			t.Errorf("%+v, then %+v, %v", got, again, err)
		}
		if why := Contradicts(got, got); why != "" {
			t.Errorf("%+v contradicts itself: %s", got, why)
		}
		if got.Name[0] != '/' || strings.Contains(got.Name+"/", "/../") || got.Size < 0 {
			t.Errorf("admitted %+v", got)
		}
	})
}

func TestContradicts(t *testing.T) {
	known := File{Name: "/a", Size: 1, Adler: "00000001", More: "md5=aa,sha256=bb"}
	for _, c := range []struct {
		said File
		want string
	}{
		{File{Size: 1}, ""},
		{File{Size: 1, More: "crc32c=cc,md5=aa"}, ""},
		{File{Size: 2}, "2 bytes, 1 are known"},
		{File{Size: 1, Adler: "00000002"}, "00000001 is known"},
		{File{Size: 1, More: "sha256=cc"}, "sha256 is said to be cc, bb is known"},
	} {
		if got := Contradicts(known, c.said); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%+v: %q", c.said, got)
		}
	}
	if got := Merged(known.More, "crc32c=cc,md5=aa"); got != "crc32c=cc,md5=aa,sha256=bb" {
		t.Error(got)
	}
}
