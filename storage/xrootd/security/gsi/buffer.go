package gsi

import (
	"bytes"
	"encoding/binary"
)

// Kinds of buckets, from XrdSutAux.hh.
const (
	bucketEnd          = 0
	bucketModule       = 3000 // name of the crypto module
	bucketMain         = 3001 // a buffer inside
	bucketPublic       = 3004 // public key, or agreement that is not signed
	bucketAgreement    = 3005 // signed public half of the agreement
	bucketTag          = 3006 // random tag
	bucketSignedTag    = 3007 // random tag, signed
	bucketUser         = 3008 // name wanted at the server
	bucketMessage      = 3011 // text
	bucketVersion      = 3014 // version of the protocol
	bucketOptions      = 3019 // options of the client
	bucketCertificates = 3022 // certificates, PEM
	bucketIssuer       = 3023 // hash of an authority's name
	bucketCiphers      = 3025 // names of ciphers
	bucketDigests      = 3026 // names of digests
)

// Steps say what a buffer is for, from XrdSecProtocolgsi.hh.
const (
	stepHello       = 1000 // client: who are you?
	stepProof       = 1001 // client: this is who we are
	stepCertificate = 2001 // server: this is who I am
	stepDelegate    = 2002 // server: sign a proxy for me
)

// maxBuckets is more than any known message has.
const maxBuckets = 32

// A buffer is a message, or a part of one: the protocol's name, a step and
// buckets up to an end mark, all numbers big-endian with four bytes.
type buffer struct {
	step    uint32
	buckets []bucket
}

type bucket struct {
	kind uint32
	data []byte
}

// find returns the first bucket of a kind.
func (b buffer) find(kind uint32) ([]byte, bool) {
	for _, k := range b.buckets {
		if k.kind == kind {
			return k.data, true
		}
	}
	return nil, false
}

// parseBuffer reads a buffer. Its buckets share memory with data.
func parseBuffer(data []byte) (buffer, error) {
	rest, named := bytes.CutPrefix(data, []byte("gsi\x00"))
	if !named {
		return buffer{}, malformed("a message of %d bytes does not begin with gsi", len(data))
	}
	if len(rest) < 4 {
		return buffer{}, malformed("a message of %d bytes is cut off", len(data))
	}
	b := buffer{step: binary.BigEndian.Uint32(rest)}
	for rest = rest[4:]; ; {
		if len(rest) < 4 {
			return buffer{}, malformed("a message of %d bytes is cut off", len(data))
		}
		kind := binary.BigEndian.Uint32(rest)
		if kind == bucketEnd {
			return b, nil
		}
		if len(rest) < 8 || uint64(len(rest)-8) < uint64(binary.BigEndian.Uint32(rest[4:])) {
			return buffer{}, malformed("a message of %d bytes is cut off in bucket %d", len(data), kind)
		}
		if len(b.buckets) == maxBuckets {
			return buffer{}, malformed("a message has more than %d buckets", maxBuckets)
		}
		size := binary.BigEndian.Uint32(rest[4:])
		b.buckets = append(b.buckets, bucket{kind, rest[8 : 8+size : 8+size]})
		rest = rest[8+size:]
	}
}

// encode writes a buffer.
func encode(step uint32, buckets ...bucket) []byte {
	size := 4 + 4 + 4
	for _, k := range buckets {
		size += 8 + len(k.data)
	}
	out := append(make([]byte, 0, size), "gsi\x00"...)
	out = binary.BigEndian.AppendUint32(out, step)
	for _, k := range buckets {
		out = binary.BigEndian.AppendUint32(out, k.kind)
		out = binary.BigEndian.AppendUint32(out, uint32(len(k.data)))
		out = append(out, k.data...)
	}
	return binary.BigEndian.AppendUint32(out, bucketEnd)
}

func number(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
