package krb5

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"time"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/crypto/common"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Identifier octets of DER.
const (
	derInteger       = 0x02
	derBits          = 0x03
	derOctets        = 0x04
	derGeneralized   = 0x18
	derGeneralString = 0x1b
	derSequence      = 0x30
	derApplication   = 0x60 // constructed
	derContext       = 0xa0 // constructed
)

// A form is the common part of all requests with one ticket. Encoding every request by reflection
// took two thirds of a request's time.
type form struct {
	front []byte // version, type, options and ticket of the request
	who   []byte // version, realm and name of the authenticator
	kind  []byte // encryption type
	seal  func(plain []byte) ([]byte, error)
}

// newForm prepares requests with t.
func newForm(t *ticket) (*form, error) {
	ticketBytes, err := t.ticket.Marshal()
	if err != nil {
		return nil, err
	}
	five := der(derInteger, []byte{5})
	seal, err := newSeal(t.key)
	if err != nil {
		return nil, err
	}
	f := &form{seal: seal, kind: field(0, derNumber(int(t.key.KeyType)))}
	f.front = append(f.front, field(0, five)...)
	f.front = append(f.front, field(1, der(derInteger, []byte{14}))...)
	f.front = append(f.front, field(2, der(derBits, []byte{0, 0, 0, 0, 0}))...)
	f.front = append(f.front, field(3, ticketBytes)...)
	var names []byte
	for _, n := range t.client.name.NameString {
		names = append(names, der(derGeneralString, []byte(n))...)
	}
	name := append(field(0, derNumber(int(t.client.name.NameType))), field(1, der(derSequence, names))...)
	f.who = append(f.who, field(0, five)...)
	f.who = append(f.who, field(1, der(derGeneralString, []byte(t.client.realm)))...)
	f.who = append(f.who, field(2, der(derSequence, name))...)
	return f, nil
}

// request makes an AP-REQ (RFC 4120, 5.5.1) with the time now.
func (f *form) request(now time.Time) ([]byte, error) {
	body := make([]byte, 0, len(f.who)+64)
	body = append(body, f.who...)
	body = append(body, field(4, derNumber(now.Nanosecond()/1000))...)
	body = append(body, field(5, der(derGeneralized, now.UTC().AppendFormat(nil, "20060102150405Z")))...)
	authenticator := der(derApplication|asnAppTag.Authenticator, der(derSequence, body))
	sealed, err := f.seal(authenticator)
	if err != nil {
		return nil, err
	}
	secret := make([]byte, 0, len(f.kind)+len(sealed)+16)
	secret = append(secret, f.kind...)
	secret = append(secret, field(2, der(derOctets, sealed))...)
	all := make([]byte, 0, len(f.front)+len(secret)+16)
	all = append(all, f.front...)
	all = append(all, field(4, der(derSequence, secret))...)
	return der(derApplication|asnAppTag.APREQ, der(derSequence, all)), nil
}

// der puts an identifier and a length before contents.
func der(identifier byte, contents []byte) []byte {
	n := len(contents)
	b := make([]byte, 0, n+6)
	b = append(b, identifier)
	switch {
	case n < 0x80:
		b = append(b, byte(n))
	case n < 0x100:
		b = append(b, 0x81, byte(n))
	case n < 0x10000:
		b = append(b, 0x82, byte(n>>8), byte(n))
	default:
		b = append(b, 0x84, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return append(b, contents...)
}

// field encodes a member of a SEQUENCE.
func field(n byte, contents []byte) []byte { return der(derContext|n, contents) }

// derNumber encodes an INTEGER of at most 32 bits in its shortest form.
func derNumber(n int) []byte {
	size := 1
	for size < 4 && (n < -1<<(8*size-1) || n >= 1<<(8*size-1)) {
		size++
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(n >> (8 * (size - 1 - i)))
	}
	return der(derInteger, b)
}

// newSeal returns a function that encrypts authenticators with a session key. For the common
// encryption types the two keys that RFC 3961 derives from it are derived once instead of for every
// request, where they took half the time.
func newSeal(key types.EncryptionKey) (func([]byte) ([]byte, error), error) {
	e, err := crypto.GetEtype(key.KeyType)
	if err != nil {
		return nil, err
	}
	if key.KeyType != etypeID.AES256_CTS_HMAC_SHA1_96 && key.KeyType != etypeID.AES128_CTS_HMAC_SHA1_96 {
		return func(plain []byte) ([]byte, error) {
			_, sealed, err := e.EncryptMessage(key.KeyValue, plain, keyusage.AP_REQ_AUTHENTICATOR)
			return sealed, err
		}, nil
	}
	secret, err := e.DeriveKey(key.KeyValue, common.GetUsageKe(keyusage.AP_REQ_AUTHENTICATOR))
	if err != nil {
		return nil, err
	}
	integrity, err := e.DeriveKey(key.KeyValue, common.GetUsageKi(keyusage.AP_REQ_AUTHENTICATOR))
	if err != nil {
		return nil, err
	}
	front := e.GetConfounderByteSize()
	return func(plain []byte) ([]byte, error) {
		message := make([]byte, front, front+len(plain))
		_, _ = rand.Read(message) // never fails
		message = append(message, plain...)
		mac := hmac.New(sha1.New, integrity)
		mac.Write(message)
		_, sealed, err := e.EncryptData(secret, message)
		if err != nil {
			return nil, err
		}
		return append(sealed, mac.Sum(nil)[:e.GetHMACBitLength()/8]...), nil
	}, nil
}
