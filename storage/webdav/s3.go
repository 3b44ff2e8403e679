package webdav

import (
	"cmp"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"weir/internal/digest"
	"weir/storage"
	"weir/storage/wireclient"
)

// A bucket is a target of S3: its requests are signed with Signature Version 4, its folders are prefixes of names. The source of
// all formats is the Amazon S3 API Reference (docs.aws.amazon.com/AmazonS3/latest/API).
type bucket struct {
	user, secret, region string
	at                   string // escaped path of the bucket, with a slash at its end
	prefix               string // of all names of the target, unescaped: "" or with a slash at its end

	today atomic.Pointer[dayKey]
}

// A dayKey is the key that signs all requests of a day.
type dayKey struct {
	day string
	key []byte
}

// Of a request that is signed.
const (
	signature = "AWS4-HMAC-SHA256"
	unsigned  = "UNSIGNED-PAYLOAD" // stands for the hash of the body, which TLS protects, or nothing does
	amzTime   = "20060102T150405Z"
	dayLength = len("20060102")
)

// newBucket returns the bucket of https://HOST/BUCKET/PREFIX or, on hosts of AWS whose name begins with the bucket's, of
// https://BUCKET.s3.REGION.amazonaws.com/PREFIX, and the escaped path of the target, without a slash at its end.
func newBucket(t storage.Target) (*bucket, string, error) {
	if t.URL.RawQuery != "" {
		return nil, "", errors.New("an S3 target has no query")
	}
	host := strings.ToLower(t.URL.Hostname())
	k := &bucket{user: t.Cred.User, secret: t.Cred.Password, region: regionOf(host), at: "/"}
	path := strings.Trim(t.URL.Path, "/")
	if k.prefix = path; !strings.HasSuffix(host, ".amazonaws.com") || strings.HasPrefix(host, "s3.") || strings.HasPrefix(host, "s3-") {
		name, rest, _ := strings.Cut(path, "/")
		if name == "" {
			return nil, "", errors.New("an S3 target names a bucket: https://HOST/BUCKET or https://HOST/BUCKET/FOLDER")
		}
		k.at, k.prefix = string(appendPath([]byte("/"), name))+"/", rest
	}
	if k.prefix != "" {
		k.prefix += "/"
	}
	return k, strings.TrimRight(string(appendPath([]byte("/"), path)), "/"), nil
}

// regionOf returns the region in a name of AWS: s3.eu-west-1.amazonaws.com. Other services have none, and take us-east-1.
func regionOf(host string) string {
	name, aws := strings.CutSuffix(host, ".amazonaws.com")
	labels := strings.Split(name, ".")
	if last := labels[len(labels)-1]; aws && last != "s3" {
		return strings.TrimPrefix(last, "s3-")
	}
	return "us-east-1"
}

// keyOf returns the key of a day.
func (k *bucket) keyOf(day string) []byte {
	if d := k.today.Load(); d != nil && d.day == day {
		return d.key
	}
	key := deriveKey(k.secret, day, k.region, "s3")
	k.today.Store(&dayKey{day, key})
	return key
}

// deriveKey returns the key that signs what a service of AWS is asked for on a day.
func deriveKey(secret, day, region, service string) []byte {
	key := []byte("AWS4" + secret)
	for _, part := range []string{day, region, service, "aws4_request"} {
		key = seal(key, []byte(part))
	}
	return key
}

func seal(key, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	return h.Sum(nil)
}

// sign appends the header lines that prove who sends a request for target, an escaped path and query, as they stand in it. The
// parts of a query are in the order of their names, and "/" is escaped in them.
func (k *bucket) sign(b []byte, r *request, authority, target string, now time.Time) []byte {
	date := now.UTC().Format(amzTime)
	path, query, _ := strings.Cut(target, "?")
	names, lines := "host;x-amz-content-sha256;x-amz-date", "host:"+authority+"\n"
	if r.sums {
		names, lines = "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date", lines+"x-amz-checksum-mode:ENABLED\n"
		b = append(b, "x-amz-checksum-mode: ENABLED\r\n"...)
	}
	whole := sha256.Sum256([]byte(r.method + "\n" + path + "\n" + query + "\n" + lines + "x-amz-content-sha256:" + unsigned +
		"\nx-amz-date:" + date + "\n\n" + names + "\n" + unsigned))
	scope := date[:dayLength] + "/" + k.region + "/s3/aws4_request"
	sum := seal(k.keyOf(date[:dayLength]), []byte(signature+"\n"+date+"\n"+scope+"\n"+hex.EncodeToString(whole[:])))
	b = append(b, "x-amz-content-sha256: "+unsigned+"\r\nx-amz-date: "+date+"\r\nAuthorization: "+signature+" Credential="...)
	b = append(b, k.user+"/"+scope+", SignedHeaders="+names+", Signature="...)
	b = hex.AppendEncode(b, sum)
	return append(b, "\r\n"...)
}

// bucketMethods carry out the kinds of operations on S3, which does not move.
func bucketMethods() wireclient.Methods[*call] {
	all := methods()
	all[storage.Move] = nil
	all[storage.List], all[storage.Mkdir], all[storage.Remove] = (*call).listObjects, (*call).makeMarker, (*call).removeObject
	return all
}

// removeObject looks first whether there is an object of that name, as DELETE succeeds where there is none: it may be a folder.
func (x *call) removeObject() error {
	if strings.Trim(x.Op.Path, "/") == "" {
		return x.remove()
	}
	if x.Op.Folder || strings.HasSuffix(x.Op.Path, "/") {
		return x.removeFolder()
	}
	there, err := x.isObject(x.Op.Path)
	switch {
	case err != nil:
		return err
	case there:
		return x.remove()
	}
	return x.removeFolder()
}

// isObject reports whether there is an object of a name below the target.
func (x *call) isObject(path string) (bool, error) {
	l, err := x.exchange(&request{method: http.MethodHead, path: path})
	if err != nil {
		return false, err
	}
	if x.head.status != http.StatusOK && x.head.status != http.StatusNotFound {
		return false, x.refuse(l)
	}
	x.finish(l)
	return x.head.status == http.StatusOK, nil
}

// makeMarker makes a folder as other clients of S3 do: an empty object whose name ends in a slash.
func (x *call) makeMarker() error {
	l, err := x.exchange(&request{method: http.MethodPut, path: x.Op.Path, slash: true, extra: "If-None-Match: *\r\nContent-Length: 0\r\n"})
	if err != nil {
		return err
	}
	if x.head.status == http.StatusPreconditionFailed {
		return x.refuseAs(l, fs.ErrExist)
	}
	return x.made(l)
}

// objectSum returns the checksum that S3 states of an object, as ALGORITHM:HEX: md5 is the ETag of what one PUT has written
// unencrypted, crc32c is there if the writer or the service made it.
func (h *head) objectSum(alg digest.Algorithm) (string, error) {
	var sum []byte
	var err error
	size := 0
	switch alg.Name {
	case "md5":
		sum, err = hex.DecodeString(strings.Trim(string(h.etag), `"`))
		size = md5.Size
	case "crc32c":
		sum, err = base64.StdEncoding.DecodeString(string(h.crc32c))
		size = crc32.Size
	}
	if err != nil || len(sum) == 0 || len(sum) != size {
		return "", noSum(alg)
	}
	return alg.Name + ":" + hex.EncodeToString(sum), nil
}

// listObjects is ListObjectsV2, page by page.
func (x *call) listObjects() error {
	k := x.c.s.bucket
	below := strings.Trim(x.Op.Path, "/")
	if below != "" {
		below += "/"
	}
	page := objects{prefix: k.prefix + below}
	for first := true; first || page.next != ""; first = false {
		l, err := x.exchange(&request{method: http.MethodGet, path: x.Op.Path, slash: true, target: k.listing(page.prefix, page.next)})
		if err != nil {
			return err
		}
		if x.head.status != http.StatusOK {
			return x.refuse(l)
		}
		if first {
			x.Reach(storage.Opened)
		}
		if err := x.listBody(l, page.parse); err != nil {
			return err
		}
	}
	if below == "" || page.marked || len(page.entries) > 0 {
		return nil
	}
	if there, err := x.isObject(strings.TrimSuffix(below, "/")); err != nil || there {
		return cmp.Or[error](err, syscall.ENOTDIR)
	}
	return fmt.Errorf("no name begins with %q: %w", page.prefix, fs.ErrNotExist)
}

// listing returns path and query that list what is directly below a prefix, as sign wants them.
func (k *bucket) listing(prefix, next string) string {
	value := func(text string) string { return strings.ReplaceAll(string(appendPath(nil, text)), "/", "%2F") }
	query := "delimiter=%2F&list-type=2&prefix=" + value(prefix)
	if next != "" {
		query = "continuation-token=" + value(next) + "&" + query
	}
	return k.at + "?" + query
}

// objects is a listing as far as it has been read.
type objects struct {
	prefix  string
	entries []storage.Entry
	marked  bool   // there is an object with the name of the prefix
	next    string // what asks for the next page; "": there is none
}

// parse reads one page and returns all entries so far.
func (o *objects) parse(r io.Reader) ([]storage.Entry, error) {
	o.next = ""
	err := elements(r, func(name string, decode func(any) error) error {
		var item struct {
			Key, Prefix string
			Size        int64
		}
		switch name {
		case "NextContinuationToken":
			return decode(&o.next)
		case "Contents", "CommonPrefixes":
			if err := decode(&item); err != nil {
				return err
			}
			return o.add(cmp.Or(item.Key, item.Prefix), item.Size)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return o.entries, nil
}

// add adds an object, or a prefix of several.
func (o *objects) add(name string, size int64) (err error) {
	below, ok := strings.CutPrefix(name, o.prefix)
	if !ok {
		return wireclient.ProtocolError("listing: %.200q is not below %.200q", name, o.prefix)
	}
	if below == "" {
		o.marked = true
		return nil
	}
	e := storage.Entry{Name: below, Size: size}
	if folder, ok := strings.CutSuffix(below, "/"); ok {
		e = storage.Entry{Name: folder, Size: -1, Dir: true}
	}
	o.entries, err = wireclient.AppendEntry(o.entries, e)
	return err
}

// codeOf returns code and message of an error that S3 has answered, "" if the body has none.
func codeOf(body []byte) string {
	var e struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}
	if _ = xml.Unmarshal(body, &e); e.Code == "" { // the end may be missing
		return ""
	}
	return printable([]byte(e.Code+": "+e.Message), 200)
}
