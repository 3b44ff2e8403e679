// Package dn handles the distinguished names of certificates as they are encoded: it computes OpenSSL's hashes of a
// name, by which folders of authorities name their files, and appends a common name.
package dn

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// Hashes returns the hashes of a distinguished name, as OpenSSL calls files by them: since 1.0.0 (SHA-1 of the
// canonical name) and before (MD5 of the name as it stands).
func Hashes(raw []byte) ([]string, error) {
	canonical, err := canonicalName(raw)
	if err != nil {
		return nil, err
	}
	now, old := sha1.Sum(canonical), md5.Sum(raw)
	return []string{hashText(now[:]), hashText(old[:])}, nil
}

func hashText(sum []byte) string { return fmt.Sprintf("%08x", binary.LittleEndian.Uint32(sum)) }

// WithCommonName returns a distinguished name with one more common name.
func WithCommonName(raw []byte, name string) ([]byte, error) {
	sets, err := elements(raw)
	if err != nil {
		return nil, err
	}
	added, err := asn1.Marshal(struct {
		Attributes []pkix.AttributeTypeAndValue `asn1:"set"`
	}{[]pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: name}}})
	if err != nil {
		return nil, err
	}
	one, err := elements(added)
	if err != nil {
		return nil, err
	}
	var content []byte
	for _, set := range slices.Concat(sets, one) {
		content = append(content, set.FullBytes...)
	}
	return asn1.Marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: content})
}

var errNotName = errors.New("a name is not encoded as one")

// canonicalName returns OpenSSL's canonical form of a name: the sets of its sequence, with texts as
// UTF-8 in lower case and single spaces.
func canonicalName(raw []byte) ([]byte, error) {
	sets, err := elements(raw)
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, set := range sets {
		attributes, err := elements(set.FullBytes)
		if err != nil {
			return nil, err
		}
		var encoded [][]byte
		for _, a := range attributes {
			b, err := canonicalAttribute(a.FullBytes)
			if err != nil {
				return nil, err
			}
			encoded = append(encoded, b)
		}
		slices.SortFunc(encoded, bytes.Compare) // the order of a set in DER
		b, err := asn1.Marshal(asn1.RawValue{Tag: asn1.TagSet, IsCompound: true, Bytes: bytes.Join(encoded, nil)})
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	return out, nil
}

func canonicalAttribute(raw []byte) ([]byte, error) {
	parts, err := elements(raw)
	if err != nil {
		return nil, err
	}
	if len(parts) != 2 {
		return nil, fmt.Errorf("a name has an attribute of %d parts", len(parts))
	}
	value := parts[1].FullBytes
	if text, ok := utf8Text(parts[1]); ok {
		lower := strings.Map(lowerASCII, strings.Join(strings.FieldsFunc(text, isSpace), " "))
		if value, err = asn1.Marshal(asn1.RawValue{Tag: asn1.TagUTF8String, Bytes: []byte(lower)}); err != nil {
			return nil, err
		}
	}
	return asn1.Marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: append(slices.Clone(parts[0].FullBytes), value...)})
}

// elements returns the elements of a sequence or set.
func elements(raw []byte) ([]asn1.RawValue, error) {
	var outer asn1.RawValue
	if rest, err := asn1.Unmarshal(raw, &outer); err != nil || len(rest) > 0 || !outer.IsCompound {
		return nil, errNotName
	}
	var all []asn1.RawValue
	for rest := outer.Bytes; len(rest) > 0; {
		var one asn1.RawValue
		var err error
		if rest, err = asn1.Unmarshal(rest, &one); err != nil {
			return nil, errNotName
		}
		all = append(all, one)
	}
	return all, nil
}

// utf8Text returns the text of a value of one of the types whose canonical form is text.
func utf8Text(v asn1.RawValue) (string, bool) {
	const visible = 26
	if v.Class != asn1.ClassUniversal {
		return "", false
	}
	switch v.Tag {
	case asn1.TagUTF8String, asn1.TagPrintableString, asn1.TagIA5String, visible:
		return string(v.Bytes), true
	case asn1.TagT61String:
		var text strings.Builder
		for _, b := range v.Bytes {
			text.WriteRune(rune(b)) // OpenSSL reads it as Latin-1
		}
		return text.String(), true
	case asn1.TagBMPString:
		var units []uint16
		for i := 0; i+1 < len(v.Bytes); i += 2 {
			units = append(units, binary.BigEndian.Uint16(v.Bytes[i:]))
		}
		return string(utf16.Decode(units)), true
	}
	return "", false
}

func isSpace(r rune) bool { return r == ' ' || '\t' <= r && r <= '\r' }

func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// AddsCommonName reports whether a distinguished name is another one with one more common name, as that of a proxy is.
func AddsCommonName(raw, to []byte) bool {
	sets, err := elements(raw)
	if err != nil {
		return false
	}
	of, err := elements(to)
	if err != nil || len(sets) != len(of)+1 {
		return false
	}
	for i := range of {
		if !bytes.Equal(sets[i].FullBytes, of[i].FullBytes) {
			return false
		}
	}
	last, err := elements(sets[len(of)].FullBytes)
	if err != nil || len(last) != 1 {
		return false
	}
	parts, err := elements(last[0].FullBytes)
	return err == nil && len(parts) == 2 && bytes.Equal(parts[0].FullBytes, []byte{6, 3, 0x55, 4, 3})
}

// Text returns a distinguished name as OpenSSL and the grid write it: /DC=org/O=people/CN=Ada. Two names can have the same text.
func Text(raw []byte) string {
	sets, err := elements(raw)
	if err != nil {
		return "(malformed name)"
	}
	var out strings.Builder
	for _, set := range sets {
		attributes, err := elements(set.FullBytes)
		if err != nil {
			return "(malformed name)"
		}
		for i, a := range attributes {
			parts, err := elements(a.FullBytes)
			var id asn1.ObjectIdentifier
			if err != nil || len(parts) != 2 {
				return "(malformed name)"
			}
			if _, err := asn1.Unmarshal(parts[0].FullBytes, &id); err != nil {
				return "(malformed name)"
			}
			out.WriteString(map[bool]string{true: "/", false: "+"}[i == 0] + shortName(id) + "=")
			text, ok := utf8Text(parts[1])
			if !ok {
				text = string(parts[1].Bytes)
			}
			for _, b := range []byte(text) {
				if b < ' ' || b > '~' {
					fmt.Fprintf(&out, `\x%02X`, b)
				} else {
					out.WriteByte(b)
				}
			}
		}
	}
	return out.String()
}

// shortName returns OpenSSL's name of a type of attributes.
func shortName(id asn1.ObjectIdentifier) string {
	text := id.String()
	for _, one := range [][2]string{{"2.5.4.3", "CN"}, {"2.5.4.4", "SN"}, {"2.5.4.5", "serialNumber"}, {"2.5.4.6", "C"}, {"2.5.4.7", "L"},
		{"2.5.4.8", "ST"}, {"2.5.4.9", "street"}, {"2.5.4.10", "O"}, {"2.5.4.11", "OU"}, {"2.5.4.12", "title"}, {"2.5.4.42", "GN"},
		{"0.9.2342.19200300.100.1.25", "DC"}, {"0.9.2342.19200300.100.1.1", "UID"}, {"1.2.840.113549.1.9.1", "emailAddress"}} {
		if one[0] == text {
			return one[1]
		}
	}
	return text
}
