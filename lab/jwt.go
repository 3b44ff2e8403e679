package lab

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
)

// TokenAudience is the audience of tokens that every storage service takes (WLCG Common JWT Profiles).
const TokenAudience = "https://wlcg.cern.ch/jwt/v1/any"

// KeySet returns the JSON Web Key Set of keys by name (RFC 7517), which are RSA or ECDSA on P-256.
func KeySet(keys map[string]crypto.Signer) (json.RawMessage, error) {
	all := []map[string]string{}
	for id, key := range keys {
		one := map[string]string{"use": "sig", "kid": id, "alg": algorithm(key)}
		switch public := key.Public().(type) {
		case *rsa.PublicKey:
			one["kty"], one["n"], one["e"] = "RSA", b64(public.N.Bytes()), b64(big.NewInt(int64(public.E)).Bytes())
		case *ecdsa.PublicKey:
			point, err := public.Bytes() // 4, x, y
			if err != nil {
				return nil, err
			}
			one["kty"], one["crv"], one["x"], one["y"] = "EC", "P-256", b64(point[1:33]), b64(point[33:])
		}
		all = append(all, one)
	}
	return json.Marshal(map[string]any{"keys": all})
}

// algorithm returns the algorithm of a key's signatures (RFC 7518).
func algorithm(key crypto.Signer) string {
	if _, is := key.(*ecdsa.PrivateKey); is {
		return "ES256"
	}
	return "RS256"
}

// sign signs the SHA-256 of a text, as a JSON Web Signature has it.
func sign(key crypto.Signer, sum []byte) ([]byte, error) {
	private, is := key.(*ecdsa.PrivateKey)
	if !is {
		return key.Sign(rand.Reader, sum, crypto.SHA256)
	}
	r, s, err := ecdsa.Sign(rand.Reader, private, sum)
	if err != nil {
		return nil, err
	}
	both := make([]byte, 64)
	r.FillBytes(both[:32])
	s.FillBytes(both[32:])
	return both, nil
}

// SignToken makes a JSON Web Token (RFC 7519) of claims.
func SignToken(key crypto.Signer, id string, claims map[string]any) (string, error) {
	head, err := json.Marshal(map[string]string{"typ": "JWT", "alg": algorithm(key), "kid": id})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := b64(head) + "." + b64(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := sign(key, sum[:])
	if err != nil {
		return "", err
	}
	return text + "." + b64(signature), nil
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
