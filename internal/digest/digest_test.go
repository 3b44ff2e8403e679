package digest

import (
	"net/http"
	"testing"
)

func TestInHeader(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"Digest", "adler32=972bffa7", "972bffa7"},
		{"Digest", "ADLER32=62d01d6", "062d01d6"},
		{"Digest", "adler32=0x62d01d6", "062d01d6"},
		{"Digest", "md5=abcd, adler32=1", "00000001"},
		{"Digest", "md5=abcd", ""},
		{"Digest", "adler32=AAAAAAAAAA==", ""},
		{"Digest", "adler32", ""},
		{"Digest", "adler32=", ""},
		{"Digest", "adler32=-1", ""},
		{"Digest", "adler32=123456789", ""},
		{"Repr-Digest", "adler=:lyv/pw==:", "972bffa7"},
		{"Repr-Digest", "sha-256=:AAAA:, adler=:AAAAAQ==:", "00000001"},
		{"Repr-Digest", "adler=:AAAA:", ""},
		{"Repr-Digest", "adler=972bffa7", ""},
	} {
		if got := Adler32().InHeader(http.Header{tt.name: {tt.value}}); got != tt.want {
			t.Errorf("%s: %s is %q", tt.name, tt.value, got)
		}
	}
}

// Checksums of files are kept with the name of their algorithm, except adler32.
func TestShort(t *testing.T) {
	for text, want := range map[string][3]string{
		"adler32:62d01d6f": {"62d01d6f", "adler32", "62d01d6f"}, "md5:abcd": {"md5:abcd", "md5", "abcd"}, "": {"", "adler32", ""},
		"crc32c:62d01d6f": {"crc32c:62d01d6f", "crc32c", "62d01d6f"}, "sha256:ff": {"sha256:ff", "sha256", "ff"},
	} {
		short := Short(text)
		a, digits := Split(short)
		if short != want[0] || a.Name != want[1] || digits != want[2] || a.Kept(digits) != short || Words(short) != want[1]+" "+want[2] {
			t.Errorf("%q: %q, %s %q, %q", text, short, a.Name, digits, Words(short))
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add("adler32=0x62d01d6", "adler=:AAAAAQ==:")
	f.Fuzz(func(t *testing.T, digest, repr string) {
		for _, a := range Algorithms() {
			sum, _ := a.Find(digest, repr)
			if again, ok := a.Hex(sum); sum != "" && (!ok || again != sum || len(sum) != 2*a.Size) {
				t.Errorf("%s: %q", a.Name, sum)
			}
		}
	})
}
