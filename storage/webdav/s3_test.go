package webdav

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

// s3Target returns a folder of a bucket of a real service.
func s3Target(t *testing.T, server, folder string) (*lab.System, storage.Target) {
	t.Helper()
	s := labtest.Start(t, lab.S3Config{Server: server})
	cred := storage.Credentials{Method: storage.S3Auth, User: s.Settings[lab.S3Key], Password: s.Settings[lab.S3Secret]}
	return s, storagetest.TargetOf(t, s.URL+folder, cred)
}

func TestS3PassesTheSuite(t *testing.T) {
	d := Driver()
	d.Kinds = slices.DeleteFunc(d.Kinds, func(k storage.Kind) bool { return k == storage.Move }) // not supported by S3
	for _, server := range labtest.S3Servers() {
		t.Run(server, func(t *testing.T) {
			_, target := s3Target(t, server, "/a folder")
			storagetest.Run(t, d, target, storagetest.Options{Network: true, Sum: "md5"})
		})
	}
}

// do runs an operation on a target.
func do(t *testing.T, target storage.Target, op storage.Op) (storage.Result, error) {
	t.Helper()
	op.Timeout = 20 * time.Second
	return storagetest.Client(t, Driver(), target).Do(t.Context(), &op, &events{})
}

// TestS3ListsInPages checks a listing of more than a thousand names, which has several pages, with
// names that have special characters of URLs.
func TestS3ListsInPages(t *testing.T) {
	s, target := s3Target(t, "", "")
	require.NoError(t, os.Mkdir(filepath.Join(s.Data, "many"), 0o755))
	want := map[string]bool{}
	for i := range 1100 {
		name := fmt.Sprintf("a b+c&d=%%41 %d ü", i)
		want[name] = true
		require.NoError(t, os.WriteFile(filepath.Join(s.Data, "many", name), []byte("123"), 0o644))
	}
	res, err := do(t, target, storage.Op{Kind: storage.List, Path: "many"})
	require.NoError(t, err)
	for _, e := range res.Entries {
		if !want[e.Name] || e.Size != 3 || e.Dir {
			t.Fatalf("%+v", e)
		}
		delete(want, e.Name)
	}
	if len(want) > 0 {
		t.Errorf("%d names are missing", len(want))
	}
	if _, err := do(t, target, storage.Op{Kind: storage.List, Path: "none"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if _, err := do(t, target, storage.Op{Kind: storage.List, Path: "many/a b+c&d=%41 7 ü"}); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file: %v", err)
	}
}

func TestS3RefusesWithReasons(t *testing.T) {
	_, target := s3Target(t, "", "")
	wrong := target
	wrong.Cred.Password += "x"
	_, err := do(t, wrong, storage.Op{Kind: storage.Read, Path: "f", Size: -1})
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "SignatureDoesNotMatch: ") {
		t.Errorf("a wrong key: %v", err)
	}
	if _, err := do(t, target, storage.Op{Kind: storage.Move, Source: "a", Path: "b"}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a move: %v", err)
	}
	if _, err := do(t, target, storage.Op{Kind: storage.Read, Path: "none", Size: -1}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an object that is not there: %v", err)
	}
}

func TestBucketOfTarget(t *testing.T) {
	for text, want := range map[string]struct{ region, at, prefix, root string }{
		"https://h:9000/b":                             {"us-east-1", "/b/", "", "/b"},
		"https://h/b/a b/c/":                           {"us-east-1", "/b/", "a b/c/", "/b/a%20b/c"},
		"https://s3.eu-west-1.amazonaws.com/b/x":       {"eu-west-1", "/b/", "x/", "/b/x"},
		"https://s3-eu-west-1.amazonaws.com/b":         {"eu-west-1", "/b/", "", "/b"},
		"https://s3.amazonaws.com/b":                   {"us-east-1", "/b/", "", "/b"},
		"https://b.s3.eu-central-1.amazonaws.com/x":    {"eu-central-1", "/", "x/", "/x"},
		"https://my.bucket.s3.us-west-2.amazonaws.com": {"us-west-2", "/", "", ""},
		"https://h/":              {},
		"https://h/b?versionId=1": {},
		"https://s3.eu-west-1.amazonaws.com.example/b/x": {"us-east-1", "/b/", "x/", "/b/x"},
	} {
		u, err := url.Parse(text)
		require.NoError(t, err)
		k, root, err := newBucket(storage.Target{URL: u})
		if (err != nil) != (want.region == "") {
			t.Errorf("%s: %v", text, err)
		} else if err == nil && (k.region != want.region || k.at != want.at || k.prefix != want.prefix || root != want.root) {
			t.Errorf("%s: %+v, root %q; want %+v", text, k, root, want)
		}
	}
}

// TestKeyOfDay checks the key of a day with AWS's own example, except for the service: "Create a
// signed AWS API request", AWS IAM User Guide.
func TestKeyOfDay(t *testing.T) {
	const secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	k := &bucket{region: "us-east-1"}
	got := hex.EncodeToString(deriveKey(secret, "20150830", k.region, "iam"))
	if got != "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9" {
		t.Error(got)
	}
	today := k.keyOf("20150830", secret)
	if !slices.Equal(today, k.keyOf("20150830", secret)) || slices.Equal(today, k.keyOf("20150831", secret)) ||
		slices.Equal(today, k.keyOf("20150830", "renewed")) {
		t.Error("the key of another day or secret")
	}
}

func TestObjectsOfHostileServers(t *testing.T) {
	for name, text := range map[string]string{
		"cut off":        "<ListBucketResult><Contents><Key>p/a</Key>",
		"elsewhere":      "<ListBucketResult><Contents><Key>other/a</Key><Size>1</Size></Contents></ListBucketResult>",
		"another answer": "<html></html>",
		"no size":        "<ListBucketResult><Contents><Key>p/a</Key><Size>many</Size></Contents></ListBucketResult>",
		"without an end": "<ListBucketResult><Contents><Key>p/" + strings.Repeat("a", maxEntry) + "</Key></Contents></ListBucketResult>",
		"no XML":         "HTTP is fine",
	} {
		o := objects{prefix: "p/"}
		_, err := o.parse(strings.NewReader(text))
		if err == nil {
			_, err = o.turn()
		}
		if !errors.Is(err, storage.ErrProtocol) && name != "no XML" || len(o.Entries) > 0 {
			t.Errorf("%s: %v, %v", name, o.Entries, err)
		}
	}
	const busy = "<?xml version=\"1.0\"?>\n<Error><Code>SlowDown</Code><Message>Reduce your\nrate</Message><Reso"
	if got := codeOf([]byte(busy)); got != "SlowDown: Reduce your rate" {
		t.Errorf("%q", got)
	}
}

// TestRemoveOfALateObject checks that an object that is created during its removal is removed, as
// after a write that was broken off.
func TestRemoveOfALateObject(t *testing.T) {
	t.Parallel()
	empty := &fakeBucket{page: 1000}
	var heads, deletes atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodDelete:
			deletes.Add(1)
			w.WriteHeader(http.StatusNoContent)
		case r.Method != http.MethodHead:
			empty.ServeHTTP(w, r)
		case strings.HasSuffix(r.URL.Path, "/") || heads.Add(1) == 1:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer s.Close()
	target := storagetest.TargetOf(t, s.URL+"/b", storage.Credentials{Method: storage.S3Auth, User: "u", Password: "p"})
	if _, err := do(t, target, storage.Op{Kind: storage.Remove, Path: "late"}); err != nil || deletes.Load() != 1 {
		t.Errorf("%v, %d deletes after %d HEAD", err, deletes.Load(), heads.Load())
	}
}
