package webdav

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"syscall"

	"weir/internal/digest"
	"weir/storage"
	"weir/storage/wireclient"
)

// stat sends HEAD.
func (x *call) stat() error {
	l, err := x.headOf(&request{})
	switch {
	case errors.Is(err, errFolder):
		x.Reach(storage.Opened)
		x.Result.Folder = true
		return nil
	case err == nil:
		x.wire.finish(l)
	}
	return err
}

// headOf sends r as a HEAD of the operation's path. The size is that of the response.
func (x *call) headOf(r *request) (*link, error) {
	r.method, r.path = http.MethodHead, x.Op.Path
	l, err := x.wire.do(r)
	if err != nil {
		return nil, err
	}
	if !x.wire.head.ok() && x.wire.head.status != http.StatusNoContent {
		return nil, x.refuse(l)
	}
	x.Reach(storage.Opened)
	x.Result.Size, x.Result.Encoding = x.wire.head.length, x.wire.head.encoding
	return l, nil
}

// mkdir sends MKCOL. nginx requires the slash at the end.
func (x *call) mkdir() error {
	l, err := x.wire.do(&request{method: "MKCOL", path: x.Op.Path, slash: true})
	if err != nil {
		return err
	}
	if x.wire.head.status == http.StatusMethodNotAllowed { // the name is taken (RFC 4918, 9.3.1)
		return x.refuseAs(l, fs.ErrExist)
	}
	return x.made(l)
}

// made ends a request that creates something: by PUT, MKCOL or MOVE.
func (x *call) made(l *link) error {
	switch x.wire.head.status {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
		x.Reach(storage.Opened)
		x.wire.skip(l)
		return nil
	case http.StatusConflict: // a parent folder is missing (RFC 4918, 9.3.1, 9.7.1, 9.9.4)
		return x.refuseAs(l, fs.ErrNotExist)
	}
	return x.refuse(l)
}

// remove sends DELETE. On most servers a DELETE of a folder removes everything below it as well, so
// a path that is known to be a folder is listed first.
func (x *call) remove() error {
	if strings.Trim(x.Op.Path, "/") == "" {
		return fmt.Errorf("the target itself cannot be removed: %w", fs.ErrInvalid)
	}
	if strings.HasSuffix(x.Op.Path, "/") {
		return x.removeFolder()
	}
	l, err := x.delete(false)
	if err != nil || l == nil {
		return err
	}
	if x.wire.head.status != http.StatusConflict { // nginx returns this status for a folder without a slash
		return x.refuse(l)
	}
	x.wire.skip(l)
	return x.removeFolder()
}

func (x *call) removeFolder() error {
	if err := x.s.methods[storage.List](x); err != nil {
		return err
	}
	n, incomplete := len(x.Result.Entries)+x.Result.Omitted, x.Result.Incomplete
	x.SetListing(wireclient.Listing{})
	x.Result.Incomplete = false
	if incomplete {
		return fmt.Errorf("the server has no PROPFIND, and its listing for browsers may leave files out: the folder is not removed: %w",
			errors.ErrUnsupported)
	}
	if n > 0 {
		return fmt.Errorf("%w: %d entries", syscall.ENOTEMPTY, n)
	}
	l, err := x.delete(true)
	if err != nil || l == nil {
		return err
	}
	return x.refuse(l)
}

// delete returns the link if the response is not a success.
func (x *call) delete(slash bool) (*link, error) {
	l, err := x.wire.do(&request{method: http.MethodDelete, path: x.Op.Path, slash: slash})
	if err != nil {
		return nil, err
	}
	switch x.wire.head.status {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		x.Reach(storage.Opened)
		x.wire.skip(l)
		return nil, nil
	}
	return l, nil
}

// move sends MOVE. nginx requires a slash at the end of a folder's name and otherwise returns 400,
// so the request is then repeated with a slash, once.
func (x *call) move() error {
	from, to := x.Op.Source, strings.TrimSuffix(x.Op.Path, "/")
	if err := storage.CheckPath(from); err != nil {
		return err
	}
	if strings.Trim(from, "/") == "" || to == "" {
		return fmt.Errorf("the target itself cannot be moved: %w", fs.ErrInvalid)
	}
	folder := strings.HasSuffix(from, "/")
	for {
		l, err := x.wire.do(&request{method: "MOVE", path: from, to: to, slash: folder})
		if err != nil {
			return err
		}
		switch {
		case x.wire.head.status == http.StatusPreconditionFailed: // the name is taken (RFC 4918, 9.9.4)
			return x.refuseAs(l, fs.ErrExist)
		case x.wire.head.status == http.StatusBadRequest && !folder:
			x.wire.drop(l) // nginx closes the connection after it, in any case
			folder = true
			continue
		}
		return x.made(l)
	}
}

// login requests the header of the target itself. The target need not exist, as long as the service
// accepts the client.
func (x *call) login() error {
	l, err := x.wire.do(&request{method: http.MethodHead, path: x.Op.Path})
	if err != nil {
		return err
	}
	switch s := x.wire.head.status; {
	case errors.Is(storage.HTTPError(s), fs.ErrPermission), s >= 500, s == http.StatusTooManyRequests, s == http.StatusRequestTimeout:
		return x.refuse(l)
	}
	x.Reach(storage.Opened)
	x.wire.finish(l)
	return nil
}

// checksum sends HEAD with a request for a digest, in the formats of both RFCs or of S3.
func (x *call) checksum() error {
	alg, ok := digest.Lookup(x.Op.Sum)
	if !ok || alg.Name != x.Op.Sum {
		return fmt.Errorf("checksum %q: use one of adler32, crc32c, md5, sha256: %w", x.Op.Sum, errors.ErrUnsupported)
	}
	r, sum := request{extra: "Want-Digest: " + alg.RFC3230 + "\r\nWant-Repr-Digest: " + alg.RFC9530 + "=1\r\n"}, (*head).sum
	if x.s.bucket != nil {
		r, sum = request{sums: alg.Name != "md5"}, (*head).objectSum // the ETag is an MD5 sum; s3proxy refuses requests for more
	}
	l, err := x.headOf(&r)
	if err != nil {
		return err
	}
	x.Result.Sum, err = sum(&x.wire.head, alg)
	x.wire.finish(l)
	return err
}

// sum returns the checksum in a response's header, as ALGORITHM:HEX.
func (h *head) sum(alg digest.Algorithm) (string, error) {
	switch sum, invalid := alg.Find(string(h.digest), string(h.repr)); {
	case sum != "":
		return alg.Name + ":" + sum, nil
	case invalid != "":
		return "", wireclient.ProtocolError("digest %s=%q", alg.Name, clip([]byte(invalid), 100))
	}
	return "", noSum(alg)
}

func noSum(alg digest.Algorithm) error {
	return fmt.Errorf("the service reported no checksum %s: %w", alg.Name, errors.ErrUnsupported)
}
