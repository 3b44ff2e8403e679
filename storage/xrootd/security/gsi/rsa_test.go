package gsi

import (
	"bytes"
	"crypto/rsa"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"testing"

	"weir/internal/require"
	"weir/storage/gridcert/gridcerttest"
)

// TestBlocks checks that the signed data is recovered, and that the standard library accepts each
// block.
func TestBlocks(t *testing.T) {
	one, other := gridcerttest.NewCA(t, "one"), gridcerttest.NewCA(t, "other")
	public := &one.Key.PublicKey
	for _, n := range []int{1, 8, 116, 117, 118, 400, 2000} {
		data := bytes.Repeat([]byte("0\x00\xff7"), n)[:n]
		signed, err := signBlocks(one.Key, data)
		require.NoError(t, err)
		got, err := recoverBlocks(public, signed)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: %v, got %q", n, err, got)
		}
		if err := rsa.VerifyPKCS1v15(public, 0, data[:min(n, 117)], signed[:public.Size()]); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
		if _, err := recoverBlocks(&other.Key.PublicKey, signed); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%d bytes of another key: %v", n, err)
		}
		for i := range signed {
			damaged := bytes.Clone(signed)
			damaged[i] ^= 0x10
			if got, err := recoverBlocks(public, damaged); err == nil {
				t.Fatalf("%d bytes, damaged at %d: %q", n, i, got)
			}
			if i == 200 {
				break
			}
		}
	}
	if got, err := recoverBlocks(public, disguised(t, one.Key)); err == nil {
		t.Errorf("a signature that is larger than the modulus: %q", got)
	}
	for name, signed := range map[string][]byte{
		"nothing": nil, "a part": make([]byte, 100), "a part more": make([]byte, 129), "too much": make([]byte, 128*(maxBlocks+1)),
		"zero": make([]byte, 128), "more than the modulus": bytes.Repeat([]byte{0xff}, 128), "the modulus": one.Key.N.Bytes(),
		"one": new(big.Int).SetInt64(1).FillBytes(make([]byte, 128)),
	} {
		if got, err := recoverBlocks(public, signed); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// disguised returns a valid signature plus the modulus.
func disguised(t *testing.T, key *rsa.PrivateKey) []byte {
	t.Helper()
	for i := range 10000 {
		c := new(big.Int).SetBytes(must(signBlocks(key, fmt.Append(nil, i))))
		if c.Add(c, key.N).BitLen() <= 1024 {
			return c.FillBytes(make([]byte, 128))
		}
	}
	return nil // no signature has room for the modulus, which is rare; nil is refused as well
}

func TestUnpad(t *testing.T) {
	fill := bytes.Repeat([]byte{0xff}, 8)
	block := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, c := range []struct {
		name  string
		block []byte
		data  string
		ok    bool
	}{
		{"shortest padding", block([]byte{0, 1}, fill, []byte("\x00data")), "data", true},
		{"long padding, zero in the data", block([]byte{0, 1}, fill, fill, []byte("\x00\x00a")), "\x00a", true},
		{"no data", block([]byte{0, 1}, fill, []byte{0}), "", true},
		{"padding of seven", block([]byte{0, 1}, fill[1:], []byte("\x00data")), "", false},
		{"padding of encryption", block([]byte{0, 2}, fill, []byte("\x00data")), "", false},
		{"first byte", block([]byte{1, 1}, fill, []byte("\x00data")), "", false},
		{"other bytes in the padding", block([]byte{0, 1}, fill, []byte("\xfe\x00data")), "", false},
		{"no end", block([]byte{0, 1}, fill, fill), "", false},
		{"nothing", nil, "", false},
	} {
		data, ok := unpad(c.block)
		if ok != c.ok || string(data) != c.data {
			t.Errorf("%s: %q, %v", c.name, data, ok)
		}
	}
}
