package krb5

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // what RFC 3962 has

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/crypto/common"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"
)

// newSeal returns what encrypts authenticators with a session key. For the
// usual encryption types the two keys that RFC 3961 derives from it are
// derived once instead of at every request, where they took half the time.
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
