package gsi

import (
	"bytes"
	"crypto/rsa"
	"math/big"
)

// signBlocks signs data itself, not its digest, in as many blocks as it
// takes: what the protocol calls encryption with the private key.
func signBlocks(key *rsa.PrivateKey, data []byte) ([]byte, error) {
	most := key.Size() - 11 // what PKCS #1 leaves of a block
	var out []byte
	for len(data) > 0 {
		n := min(most, len(data))
		block, err := rsa.SignPKCS1v15(nil, key, 0, data[:n])
		if err != nil {
			return nil, refuse("sign with the proxy's key: %v", err)
		}
		out, data = append(out, block...), data[n:]
	}
	return out, nil
}

// maxBlocks is more than a signed agreement about 8192 bits needs.
const maxBlocks = 32

// recoverBlocks returns what was signed with the key whose public half is
// given, and an error when anything else signed it. The standard library
// verifies signatures of known data only, while here the data is in them.
func recoverBlocks(key *rsa.PublicKey, signed []byte) ([]byte, error) {
	size := key.Size()
	if len(signed) == 0 || len(signed)%size != 0 || len(signed) > maxBlocks*size {
		return nil, refuse("a signature of %d bytes cannot be of the server's key of %d bits", len(signed), key.N.BitLen())
	}
	var out []byte
	e := big.NewInt(int64(key.E))
	block := make([]byte, size)
	for ; len(signed) > 0; signed = signed[size:] {
		c := new(big.Int).SetBytes(signed[:size])
		if c.Cmp(key.N) >= 0 {
			return nil, refuse("a signature is not of the server's key")
		}
		data, ok := unpad(c.Exp(c, e, key.N).FillBytes(block))
		if !ok {
			return nil, refuse("a signature is not of the server's key")
		}
		out = append(out, data...)
	}
	return out, nil
}

// unpad removes the padding of PKCS #1 v1.5 signatures: 0, 1, at least eight
// 255 and 0.
func unpad(block []byte) ([]byte, bool) {
	if len(block) < 11 || block[0] != 0 || block[1] != 1 {
		return nil, false
	}
	end := bytes.IndexByte(block[2:], 0)
	if end < 8 {
		return nil, false
	}
	for _, b := range block[2 : 2+end] {
		if b != 0xff {
			return nil, false
		}
	}
	return block[2+end+1:], true
}
