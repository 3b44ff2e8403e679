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
