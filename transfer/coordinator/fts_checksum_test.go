package coordinator

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/content"
	"weir/internal/digest"
	"weir/internal/tpc"
	"weir/lab"
	"weir/lab/labtest"
	"weir/serve"
	"weir/serve/servetest"
	"weir/transfer/access"
	"weir/transfer/fts"
)

// A sumEnd is a storage endpoint and the folder of its files.
type sumEnd struct{ url, dir string }

// sumsOf returns the checksums of data by algorithm.
func sumsOf(t *testing.T, data []byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, a := range digest.Algorithms() {
		h, err := content.NewHash(a.Name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = h.Write(data) // never fails
		_, all[a.Name], _ = strings.Cut(content.Text(a.Name, h), ":")
	}
	return all
}

// A job may specify adler32, crc32c, md5 or sha256 of its files. A file with the right value
// arrives and a file with a wrong value does not, independently of the checksums that an endpoint
// computes and of the end that is verified, unless checksums are not to be verified. The
// coordinator computes the checksums that an endpoint does not provide (XRootD: sha256, nginx:
// all).
func TestFTSChecksums(t *testing.T) {
	t.Parallel()
	x := labtest.Start(t, lab.XRootDConfig{Copies: true, Config: lab.Config{TLS: true}})
	y := labtest.Start(t, lab.XRootDConfig{Copies: true, Config: lab.Config{TLS: true}, Authority: x})
	nginx, own := labtest.Start(t, lab.NginxConfig{}), t.TempDir()
	p := &ftsPair{start(t, Config{Approve: -1, SiteCA: x.CAFile, JobArea: tpc.Loopback}), x, y}
	u := p.ftsUser("alice", access.MaySubmit)
	served := sumEnd{servetest.Start(t, serve.Config{Dir: own, Extensions: thirdParty()}), own}
	web := sumEnd{nginx.URL, nginx.Data}
	data := []byte(strings.Repeat("four checksums\n", 1000))
	right, wrong := sumsOf(t, data), sumsOf(t, []byte("something else"))
	p.put(x, "s/f", data)
	p.put(nginx, "s/f", data)
	if err := os.MkdirAll(filepath.Join(own, "s"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(own, "s/f"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	ids := map[[2]string]string{}
	ways := map[string][2]sumEnd{
		"https": {{x.URLs["https"], x.Data}, {y.URLs["https"], y.Data}}, "root": {{x.URLs["root"], x.Data}, {y.URLs["root"], y.Data}},
		"weir": {served, served}, "weir to nginx": {served, web}, "nginx to root": {web, {y.URLs["root"], y.Data}},
	}
	kinds := slices.Sorted(maps.Keys(right))
	modes := []string{"source", "target", "both", "none"}
	name := func(way, mode, kind string, ok bool) string {
		return fmt.Sprintf("s/%s/%s-%s-%v", strings.ReplaceAll(way, " ", "-"), mode, kind, ok)
	}
	for way, ends := range ways {
		for _, mode := range modes {
			var files []string
			for _, kind := range kinds {
				for ok, sum := range map[bool]string{true: right[kind], false: wrong[kind]} {
					files = append(files, fmt.Sprintf(`{"sources":["%s/s/f"],"destinations":["%s/%s"],"checksum":"%s:%s"}`, ends[0].url,
						ends[1].url, name(way, mode, kind, ok), strings.ToUpper(kind), sum))
				}
			}
			ids[[2]string{way, mode}] = u.submit(fmt.Sprintf(`{"files":[%s],"params":{"verify_checksum":%q,"retry":-1}}`,
				strings.Join(files, ","), mode))
		}
	}
	for way, ends := range ways {
		for _, mode := range modes {
			got := map[string]ftsFile{}
			for _, f := range u.ended(ids[[2]string{way, mode}]).Files {
				_, at, _ := strings.Cut(f.Dest, "/s/")
				got["s/"+at] = f
			}
			for _, kind := range kinds {
				for _, ok := range []bool{true, false} {
					at := name(way, mode, kind, ok)
					f, words := got[at], []string(nil)
					if mode != "none" && !ok {
						words = []string{kind, right[kind], wrong[kind]}
					}
					if words == nil {
						there, err := os.ReadFile(filepath.Join(ends[1].dir, at))
						if f.State != fts.Finished || err != nil || string(there) != string(data) {
							t.Errorf("%s: %+v: %d bytes, %v", at, f, len(there), err)
						}
						continue
					}
					if _, err := os.Stat(filepath.Join(ends[1].dir, at)); f.State != fts.Failed || !os.IsNotExist(err) {
						t.Errorf("%s: %+v, %v", at, f, err)
					}
					for _, word := range words {
						if !strings.Contains(f.Reason, word) {
							t.Errorf("%s: %q without %q", at, f.Reason, word)
						}
					}
				}
			}
		}
	}
}
