package dn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/lab/labtest"
)

// Names of files equal the names by OpenSSL, for all kinds of texts.
func TestHashes(t *testing.T) {
	labtest.Need(t, "openssl")
	text := func(tag int, s string) asn1.RawValue { return asn1.RawValue{Tag: tag, Bytes: []byte(s)} }
	attribute := func(oid asn1.ObjectIdentifier, v asn1.RawValue) []byte {
		return must(asn1.Marshal(struct {
			Type  asn1.ObjectIdentifier
			Value asn1.RawValue
		}{oid, v}))
	}
	common, org := asn1.ObjectIdentifier{2, 5, 4, 3}, asn1.ObjectIdentifier{2, 5, 4, 10}
	for name, sets := range map[string][][][]byte{
		"plain": {{attribute(common, text(asn1.TagUTF8String, "weir"))}},
		"letters": {{attribute(org, text(asn1.TagPrintableString, "  CERN  Grid CA "))},
			{attribute(common, text(asn1.TagPrintableString, "Certification Authority 2"))}},
		"mail":        {{attribute(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, text(asn1.TagIA5String, "CA@Example.ORG"))}},
		"umlauts":     {{attribute(org, text(asn1.TagUTF8String, "Ö\tÄ  ü"))}},
		"latin":       {{attribute(org, text(asn1.TagT61String, "Universit\xe9 DE"))}},
		"two bytes":   {{attribute(org, text(asn1.TagBMPString, "\x00G\x00r\x00\xfc\x00n"))}},
		"set of two":  {{attribute(common, text(asn1.TagPrintableString, "a")), attribute(org, text(asn1.TagPrintableString, "B"))}},
		"not a text":  {{attribute(asn1.ObjectIdentifier{2, 5, 4, 45}, asn1.RawValue{Tag: asn1.TagBitString, Bytes: []byte{0, 'A'}})}},
		"empty value": {{attribute(org, text(asn1.TagUTF8String, "   "))}},
	} {
		var content []byte
		for _, set := range sets {
			var all []byte
			for _, a := range set {
				all = append(all, a...)
			}
			content = append(content, must(asn1.Marshal(asn1.RawValue{Tag: asn1.TagSet, IsCompound: true, Bytes: all}))...)
		}
		raw := must(asn1.Marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: content}))
		der := certificateOf(t, raw)
		file := filepath.Join(t.TempDir(), "c.pem")
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
		out, err := exec.CommandContext(t.Context(), "openssl", "x509", "-in", file, "-noout", "-subject_hash", "-subject_hash_old").Output()
		require.NoError(t, err)
		got, err := Hashes(raw)
		if want := strings.Fields(string(out)); err != nil || len(want) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%s: %v, %v, OpenSSL says %v", name, got, err, want)
		}
	}
}

// certificateOf makes a certificate of a subject. The library's own maker
// would refuse some of them.
func certificateOf(t *testing.T, subject []byte) []byte {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	plain := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	var outer struct {
		TBS, Algorithm asn1.RawValue
		Signature      asn1.BitString
	}
	if _, err := asn1.Unmarshal(plain, &outer); err != nil {
		t.Fatal(err)
	}
	parts := must(elements(outer.TBS.FullBytes))
	var tbs []byte
	for i, p := range parts {
		if i == 5 { // version, serial, algorithm, issuer, validity, subject
			p.FullBytes = subject
		}
		tbs = append(tbs, p.FullBytes...)
	}
	outer.TBS = asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: tbs}
	return must(asn1.Marshal(outer))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestHashesRefuse(t *testing.T) {
	for _, raw := range []string{"", "x", "\x30\x02\x31\x05", "\x30\x04\x31\x02\x30\x00", "\x30\x80", "\x04\x00"} {
		if h, err := Hashes([]byte(raw)); err == nil {
			t.Errorf("%q has the hashes %v", raw, h)
		}
	}
}

func FuzzHashes(f *testing.F) {
	f.Add([]byte("\x30\x00"))
	f.Add(must(asn1.Marshal(pkix.Name{CommonName: "weir"}.ToRDNSequence())))
	hash := regexp.MustCompile("^[0-9a-f]{8}$")
	f.Fuzz(func(t *testing.T, raw []byte) {
		hashes, err := Hashes(raw)
		if err == nil && (len(hashes) != 2 || !hash.MatchString(hashes[0]) || !hash.MatchString(hashes[1])) {
			t.Fatalf("%q", hashes)
		}
		if longer, err := WithCommonName(raw, "1"); err == nil {
			if _, err := elements(longer); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Names are written like OpenSSL writes them, and a proxy's name is its signer's name with one more
// common name.
func TestText(t *testing.T) {
	name := pkix.RDNSequence{
		{{Type: asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 25}, Value: "org"}},
		{{Type: asn1.ObjectIdentifier{2, 5, 4, 10}, Value: "people"}},
		{{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "host/a.example.org é"}},
		{{Type: asn1.ObjectIdentifier{1, 2, 3}, Value: "x"}},
	}
	raw, err := asn1.Marshal(name)
	require.NoError(t, err)
	if got, want := Text(raw), `/DC=org/O=people/CN=host/a.example.org \xC3\xA9/1.2.3=x`; got != want {
		t.Errorf("%s instead of %s", got, want)
	}
	more, err := WithCommonName(raw, "1")
	require.NoError(t, err)
	most, err := WithCommonName(more, "2")
	require.NoError(t, err)
	other, err := asn1.Marshal(append(name, pkix.RelativeDistinguishedNameSET{{Type: asn1.ObjectIdentifier{2, 5, 4, 10}, Value: "1"}}))
	require.NoError(t, err)
	if !AddsCommonName(more, raw) || !AddsCommonName(most, more) {
		t.Error("one more common name is not seen")
	}
	for what, pair := range map[string][2][]byte{"two more": {most, raw}, "none": {raw, raw}, "fewer": {raw, more}, "of another": {most, raw},
		"not a common name": {other, raw}, "garbage": {{1, 2}, raw}, "of garbage": {more, nil}} {
		if AddsCommonName(pair[0], pair[1]) {
			t.Error(what)
		}
	}
	if got := Text([]byte{0x30, 0x80}); !strings.Contains(got, "malformed") {
		t.Error(got)
	}
}
