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
	"net/url"
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
	user   string // access key; "": the access key precedes the secret key, with a colon
	region string
	secret *storage.Renewable[string]
	token  *storage.Renewable[string] // session token; its value may be ""
	at     string                     // escaped path of the bucket, with a slash at its end
	prefix string                     // of all names of the target, unescaped: "" or with a slash at its end

	today atomic.Pointer[dayKey]
}

// A dayKey is the key that signs all requests of a day with a secret key.
type dayKey struct {
	day, secret string
	key         []byte
}

// Constants of a signed request.
const (
	signature = "AWS4-HMAC-SHA256"
	unsigned  = "UNSIGNED-PAYLOAD" // instead of the hash of the body, which is protected by TLS or not at all
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
	k := &bucket{user: t.Cred.User, secret: t.Cred.Secret(), token: t.Cred.Bearer(), region: regionOf(host), at: "/"}
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

// regionOf returns the region in a name of AWS: s3.eu-west-1.amazonaws.com. Other services do not
// have regions, and accept us-east-1.
func regionOf(host string) string {
	name, aws := strings.CutSuffix(host, ".amazonaws.com")
	labels := strings.Split(name, ".")
	if last := labels[len(labels)-1]; aws && last != "s3" {
		return strings.TrimPrefix(last, "s3-")
	}
	return "us-east-1"
}

// keys returns the access key and the secret key.
func (k *bucket) keys(secret string) (string, string) {
	if k.user != "" {
		return k.user, secret
	}
	user, secret, _ := strings.Cut(secret, ":")
	return user, secret
}

// keyOf returns the key of a day.
func (k *bucket) keyOf(day, secret string) []byte {
	if d := k.today.Load(); d != nil && d.day == day && d.secret == secret {
		return d.key
	}
	key := deriveKey(secret, day, k.region, "s3")
	k.today.Store(&dayKey{day, secret, key})
	return key
}

// deriveKey returns the key that signs the requests to a service of AWS on a day.
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

// sign appends the header lines that authenticate a request for target, an escaped path and query,
// in the form that the request has. The parts of a query are in the order of their names, and "/"
// is escaped in them.
func (k *bucket) sign(b []byte, r *request, authority, target string, with proof, now time.Time) []byte {
	user, secret := k.keys(with.secret)
	date := now.UTC().Format(amzTime)
	path, query, _ := strings.Cut(target, "?")
	names, lines := "host;x-amz-content-sha256;x-amz-date", "host:"+authority+"\n"
	if r.sums {
		names, lines = "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date", lines+"x-amz-checksum-mode:ENABLED\n"
		b = append(b, "x-amz-checksum-mode: ENABLED\r\n"...)
	}
	lines += "x-amz-content-sha256:" + unsigned + "\nx-amz-date:" + date + "\n"
	if with.shown != "" {
		names, lines = names+";x-amz-security-token", lines+"x-amz-security-token:"+with.shown+"\n"
		b = append(b, "x-amz-security-token: "+with.shown+"\r\n"...)
	}
	whole := sha256.Sum256([]byte(r.method + "\n" + path + "\n" + query + "\n" + lines + "\n" + names + "\n" + unsigned))
	scope := date[:dayLength] + "/" + k.region + "/s3/aws4_request"
	sum := seal(k.keyOf(date[:dayLength], secret), []byte(signature+"\n"+date+"\n"+scope+"\n"+hex.EncodeToString(whole[:])))
	b = append(b, "x-amz-content-sha256: "+unsigned+"\r\nx-amz-date: "+date+"\r\nAuthorization: "+signature+" Credential="...)
	b = append(b, user+"/"+scope+", SignedHeaders="+names+", Signature="...)
	b = hex.AppendEncode(b, sum)
	return append(b, "\r\n"...)
}

// bucketMethods returns the methods for S3, which has no move.
func bucketMethods() wireclient.Methods[*call] {
	all := methods()
	all[storage.Move] = nil
	all[storage.List], all[storage.Mkdir], all[storage.Remove] = (*call).listObjects, (*call).makeMarker, (*call).removeObject
	return all
}

// removeObject first checks whether there is an object of that name, as DELETE also succeeds if
// there is no object: the name may be a folder.
func (x *call) removeObject() error {
	if strings.Trim(x.Op.Path, "/") == "" {
		return x.remove()
	}
	if x.Op.Folder || strings.HasSuffix(x.Op.Path, "/") {
		return x.removeMarker()
	}
	there, err := x.isObject(x.Op.Path)
	switch {
	case err != nil:
		return err
	case there:
		return x.remove()
	}
	if err = x.removeFolder(); errors.Is(err, syscall.ENOTDIR) {
		return x.remove() // the object exists by now: a service may complete a write late, after the client has broken it off
	}
	return err
}

// removeMarker removes an empty folder. If neither the listing nor HEAD finds its marker, DELETE is
// sent nevertheless, because some services recognize a marker only by its name; the error is then
// fs.ErrNotExist, since DELETE does not report whether a marker existed.
func (x *call) removeMarker() error {
	err := x.removeFolder()
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l, refused := x.delete(true)
	if l != nil {
		refused = x.refuse(l)
	}
	return cmp.Or(refused, err)
}

// isObject reports whether there is an object of a name below the target, or of the target itself.
func (x *call) isObject(path string) (bool, error) {
	l, err := x.wire.do(&request{method: http.MethodHead, path: path, bare: path == ""})
	if err != nil {
		return false, err
	}
	if !x.wire.head.ok() && x.wire.head.status != http.StatusNotFound {
		return false, x.refuse(l)
	}
	x.wire.finish(l)
	return x.wire.head.ok(), nil
}

// makeMarker creates a folder like other clients of S3: an empty object whose name ends in a slash.
func (x *call) makeMarker() error {
	l, err := x.wire.do(&request{method: http.MethodPut, path: x.Op.Path, slash: true, extra: "If-None-Match: *\r\nContent-Length: 0\r\n"})
	if err != nil {
		return err
	}
	if x.wire.head.status == http.StatusPreconditionFailed {
		return x.refuseAs(l, fs.ErrExist)
	}
	return x.made(l)
}

// objectSum returns the checksum of an object in S3, as ALGORITHM:HEX: md5 is the ETag of an object
// written unencrypted with one PUT, crc32c exists if the writer or the service computed it.
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
	k := x.s.bucket
	below := strings.Trim(x.Op.Path, "/")
	if below != "" {
		below += "/"
	}
	all := objects{prefix: k.prefix + below}
	for more, first := true, true; more; first = false {
		l, err := x.wire.do(&request{method: http.MethodGet, path: x.Op.Path, slash: true, target: k.listing(&all)})
		if err != nil {
			return err
		}
		if !x.wire.head.ok() {
			return x.refuse(l)
		}
		if first {
			x.Reach(storage.Opened)
		}
		if err = x.listBody(l, all.parse); err == nil {
			more, err = all.turn()
		}
		if err != nil {
			return err
		}
	}
	x.SetListing(all.Listing)
	if all.prefix == "" || all.marked || len(all.Entries)+all.Omitted > 0 {
		return nil
	}
	if below != "" {
		if marked, err := x.isObject(below); err != nil || marked { // a marker that the listing omits
			return err
		}
	}
	there, err := x.isObject(strings.TrimSuffix(below, "/"))
	switch {
	case err == nil && there:
		return syscall.ENOTDIR
	case err != nil || below == "":
		return err
	}
	return fmt.Errorf("no name begins with %q: %w", all.prefix, fs.ErrNotExist)
}

// listing returns path and query of the next page of a listing, in the form for sign. Services that
// only support the first version of the request (ListObjects) use marker, others ignore it.
func (k *bucket) listing(o *objects) string {
	value := func(text string) string { return strings.ReplaceAll(string(appendPath(nil, text)), "/", "%2F") }
	query := "delimiter=%2F&encoding-type=url&list-type=2&prefix=" + value(o.prefix)
	switch {
	case o.token != "":
		query = "continuation-token=" + value(o.token) + "&" + query
	case o.after != "":
		query = strings.Replace(query, "prefix=", "marker="+value(o.after)+"&prefix=", 1) + "&start-after=" + value(o.after)
	}
	return k.at + "?" + query
}

// objects is the part of a listing that has been read. The next page is requested by a token or by
// the last name before it.
type objects struct {
	wireclient.Listing
	prefix       string
	marked       bool // there is an object with the name of the prefix
	token, after string

	page   objectPage
	names  map[string]bool // of all pages
	last   string          // the greatest name
	tokens map[string]bool // tokens that were used
	empty  int             // pages without new names
}

// An objectPage is the part of a listing in one response.
type objectPage struct {
	objects   []object
	Encoding  string // of names: "url" or ""
	Truncated string // IsTruncated
	Token     string // NextContinuationToken
	Count     int    // KeyCount; 0: missing
	Most      int    // MaxKeys; 0: missing
}

// An object is an object of a page, or a common prefix of several objects.
type object struct {
	Key, Prefix string
	Size        int64
}

// parse reads one page. It returns no listing: turn adds the page to it.
func (o *objects) parse(r io.Reader) (wireclient.Listing, error) {
	p := objectPage{objects: o.page.objects[:0]}
	err := elements(r, "ListBucketResult", func(name string, decode func(any) error) error {
		switch name {
		case "EncodingType":
			return decode(&p.Encoding)
		case "IsTruncated":
			return decode(&p.Truncated)
		case "NextContinuationToken":
			return decode(&p.Token)
		case "KeyCount":
			return decode(&p.Count)
		case "MaxKeys":
			return decode(&p.Most)
		case "Contents", "CommonPrefixes":
			var item object
			if err := decode(&item); err != nil {
				return err
			}
			if len(p.objects) > wireclient.MaxEntries {
				return wireclient.ProtocolError("more than %d entries", wireclient.MaxEntries)
			}
			p.objects = append(p.objects, item)
		}
		return nil
	})
	if err != nil {
		return wireclient.Listing{}, err
	}
	o.page = p
	return wireclient.Listing{}, nil
}

// Limits of the pages of a listing.
const (
	usualPage     = 1000 // names, at most
	maxEmptyPages = 100  // consecutive pages without a new name
)

// turn adds the page that was read, and reports whether there may be another page. If a service
// reports that the listing is complete, but the page looks truncated, the names after the last name
// are requested: if the page is full, has fewer names than its KeyCount, or a round number of
// names.
func (o *objects) turn() (more bool, err error) {
	before := len(o.names)
	repeated, err := o.addPage()
	if err != nil {
		return false, err
	}
	p, fresh := &o.page, len(o.names)-before
	n := len(p.objects)
	truncated := strings.EqualFold(strings.TrimSpace(p.Truncated), "true") || p.Truncated == "" && p.Token != ""
	switch {
	case fresh == 0 && repeated:
		return false, wireclient.ProtocolError("listing: the service returned the same %d names again where more were requested: it ignores "+
			"the continuation, so names may be missing", n)
	case truncated && fresh == 0 && p.Token == "":
		return false, wireclient.ProtocolError("listing: the service says that there are more names, and does not return them")
	case truncated && o.tokens[p.Token]:
		return false, wireclient.ProtocolError("listing: the service returned the same continuation token again")
	case fresh > 0:
		o.empty = 0
	default:
		if o.empty++; o.empty > maxEmptyPages {
			return false, wireclient.ProtocolError("listing: more than %d pages without a new name", maxEmptyPages)
		}
	}
	o.token, o.after = "", o.last
	if truncated && p.Token != "" {
		if o.tokens == nil {
			o.tokens = map[string]bool{}
		}
		o.token, o.tokens[p.Token] = p.Token, true
	}
	round := n >= 100 && (n%100 == 0 || n&(n-1) == 0)
	return truncated || fresh > 0 && (n >= cmp.Or(p.Most, usualPage) || p.Count > n || round), nil
}

// addPage adds the new names of the page. repeated is true if the page has known names other than
// the last name of the previous page.
func (o *objects) addPage() (repeated bool, err error) {
	if o.names == nil {
		o.names = map[string]bool{}
	}
	last := o.last
	for i := range o.page.objects {
		item := &o.page.objects[i]
		name := cmp.Or(item.Key, item.Prefix)
		why := damaged(name)
		if o.page.Encoding == "url" {
			if plain, err := url.QueryUnescape(name); err == nil {
				name = plain
			}
		}
		if o.names[name] {
			repeated = repeated || name != last
			continue
		}
		o.names[name] = true
		if o.last = max(o.last, name); why != nil {
			o.Omit(why)
		} else if err := o.add(name, item.Size); err != nil {
			return false, err
		}
	}
	return repeated, nil
}

// add adds an object, or a common prefix of several objects.
func (o *objects) add(name string, size int64) error {
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
	if err := wireclient.CheckEntry(e.Name); err != nil {
		o.Omit(fmt.Errorf("%.200q: no path below the target can name it: %w", name, err))
		return nil
	}
	return o.Add(e)
}

// codeOf returns the code and message of an error of S3, "" if the body has no code.
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
