package xrootd

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"

	"weir/storage/wireclient"
	"weir/storage/xrootd/security"
)

// Servers may require that requests are signed (sec.level): each request then follows a kXR_sigver,
// which has the SHA-256 of an increasing number, the request's header and its arguments, encrypted
// with the key that the login agreed on. The level determines the requests that are signed, as in
// XrdSec/XrdSecProtect.cc.

// demands are the requests that a server requires to be signed.
type demands struct {
	forced bool // also if the login agreed on no key
	level  byte // 0: nothing is signed
	other  map[uint16]byte
}

const (
	levels = 4 // compatible, standard, intense, pedantic
	likely = 1 // signed if the request changes something; 0 is never
	always = 2
)

// readDemands parses the text after the letter S in the response to kXR_protocol: a byte that is
// not used, version, options, level, a count, and that many pairs of a request and its requirement.
func readDemands(b []byte) (d demands, err error) {
	if len(b) < 6 || b[0] != 'S' {
		return demands{}, nil
	}
	const data, force = 0x01, 0x02
	d.forced, d.level = b[3]&force != 0, min(b[4], levels)
	if b[3]&data != 0 { // no configuration of XRootD sets this
		return demands{}, fmt.Errorf("the server wants data of writes to be signed, which weir does not do: %w", errors.ErrUnsupported)
	}
	pairs := b[6:]
	if n := 2 * int(b[5]); len(pairs) < n {
		return demands{}, wireclient.ProtocolError("%d of %d bytes about what is to be signed", len(pairs), n)
	}
	for i := range int(b[5]) {
		if d.other == nil {
			d.other = map[uint16]byte{}
		}
		d.other[firstRequest+uint16(pairs[2*i])] = min(pairs[2*i+1], always)
	}
	return d, nil
}

// usual returns the level from which a request is signed, and the level from which it is signed if
// it changes something.
func usual(code uint16) (from, ifChanging byte) {
	switch code {
	case rqMv, rqRm, rqRmdir:
		return 1, 1
	case rqOpen:
		return 2, 1
	case rqMkdir:
		return 2, 2
	case rqClose, rqPgread, rqPgwrite, rqWrite:
		return 3, 3
	case rqQuery:
		return 4, 3
	case rqDirlist, rqLocate, rqRead, rqReadv, rqStat, rqSync:
		return 4, 4
	}
	return levels + 1, levels + 1
}

// signed reports whether a request is to be signed.
func (d *demands) signed(head []byte) bool {
	code := binary.BigEndian.Uint16(head[2:])
	need, known := d.other[code]
	if !known {
		switch from, changing := usual(code); {
		case d.level >= from:
			need = always
		case d.level >= changing:
			need = likely
		}
	}
	if need != likely || code != rqOpen {
		return need == always // weir's queries change nothing
	}
	const changing = openDelete | openNew | openUpdate
	return binary.BigEndian.Uint16(head[6:])&changing != 0
}

// A signer signs the requests of one connection, in the order in which they are sent.
type signer struct {
	demands
	seal func(b, data []byte) ([]byte, error) // nil: the login agreed on no key
	last uint64                               // number of signed requests
	hash hash.Hash
	sum  [sha256.Size]byte
}

// newSigner returns the signer of requests after a login, nil if nothing is to be signed: a server
// accepts requests of clients without a key unless it forces signatures.
func newSigner(d demands, e security.Exchange) *signer {
	s := &signer{demands: d, hash: sha256.New()}
	if with, ok := e.(security.Sealer); ok {
		s.seal = with.Seal
	}
	if d.level == 0 && d.other == nil || s.seal == nil && !d.forced {
		return nil
	}
	return s
}

// append appends requests to b, each behind its signature if it needs one.
func (s *signer) append(b, requests []byte) ([]byte, error) {
	for len(requests) > 0 {
		size := requestSize + int(binary.BigEndian.Uint32(requests[20:]))
		var err error
		if b, err = s.sign(b, requests[:requestSize], requests[requestSize:size]); err != nil {
			return nil, err
		}
		b, requests = append(b, requests[:size]...), requests[size:]
	}
	return b, nil
}

// sign appends the signature of a request with its arguments, if it needs one. If args is nil, data
// follows that is not signed.
func (s *signer) sign(b, head, args []byte) ([]byte, error) {
	if !s.signed(head) {
		return b, nil
	}
	s.last++
	start := len(b)
	var p [16]byte
	copy(p[0:], head[2:4]) // code of the request that follows
	if args == nil {
		p[3] = 0x01 // kXR_nodata
	}
	binary.BigEndian.PutUint64(p[4:], s.last)
	p[12] = 0x01 // kXR_SHA256
	b = appendRequest(b, binary.BigEndian.Uint16(head), rqSigver, &p, 0)
	s.hash.Reset()
	s.hash.Write(b[start+8 : start+16]) // the number, as in p
	s.hash.Write(head)
	s.hash.Write(args)
	sum := s.hash.Sum(s.sum[:0])
	if s.seal == nil {
		b = append(b, sum...)
	} else {
		var err error
		if b, err = s.seal(b, sum); err != nil {
			return nil, fmt.Errorf("signature: %w", err)
		}
	}
	binary.BigEndian.PutUint32(b[start+requestSize-4:], uint32(len(b)-start-requestSize))
	return b, nil
}

// sendHead sends the header of a write, whose data follows and is not signed.
func (x *exchange) sendHead(l *link, head []byte) (err error) {
	if l.signs != nil {
		before := l.signs.last
		if x.signed, err = l.signs.sign(x.signed[:0], head, nil); err != nil {
			return err
		}
		x.call.Result.Signed += int(l.signs.last - before)
		x.signed = append(x.signed, head...)
		head = x.signed
	}
	_, err = l.wire.WriteMore(head)
	return err
}

// unsigned adds to a refusal of an unsigned request the reason for the missing signature.
func unsigned(l *link, err error) error {
	if refused(err) != erSigVer || l.signs != nil || l.demands.level == 0 && l.demands.other == nil {
		return err
	}
	return fmt.Errorf("%w: the server wants requests to be signed, and the login has agreed on no key to sign them with: use auth.method x509",
		err)
}
