package webdav

import (
	"errors"
	"fmt"
	"net/http"

	"weir/internal/digest"
	"weir/storage"
	"weir/storage/wireclient"
)

// checksum is HEAD with the wish for a digest, in the words of both RFCs.
func (x *call) checksum() error {
	alg, ok := digest.Lookup(x.Op.Sum)
	if !ok || alg.Name != x.Op.Sum {
		return fmt.Errorf("checksum %q: use one of adler32, crc32c, md5, sha256: %w", x.Op.Sum, errors.ErrUnsupported)
	}
	l, err := x.exchange(&request{
		method: http.MethodHead, path: x.Op.Path,
		extra: "Want-Digest: " + alg.RFC3230 + "\r\nWant-Repr-Digest: " + alg.RFC9530 + "=1\r\n",
	})
	if err != nil {
		return err
	}
	if x.head.status != http.StatusOK && x.head.status != http.StatusNoContent {
		return x.refuse(l)
	}
	x.Reach(storage.Opened)
	x.Result.Size = x.head.length
	sum, err := x.head.sum(alg)
	x.finish(l)
	x.Result.Sum = sum
	return err
}

// sum returns the checksum that an answer's head states, as ALGORITHM:HEX.
func (h *head) sum(alg digest.Algorithm) (string, error) {
	switch sum, invalid := alg.Find(string(h.digest), string(h.repr)); {
	case sum != "":
		return alg.Name + ":" + sum, nil
	case invalid != "":
		return "", wireclient.ProtocolError("digest %s=%q", alg.Name, clip([]byte(invalid), 100))
	}
	return "", fmt.Errorf("the service told no checksum %s: %w", alg.Name, errors.ErrUnsupported)
}
