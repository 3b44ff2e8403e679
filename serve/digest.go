package serve

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// A digestName is how a header calls a checksum of package content.
type digestName struct {
	name string // as in the header, lower case
	alg  string // as in package content
	hex  bool   // RFC 3230 writes ADLER32 in hex, all others in base64
}

// instanceDigests are the names of RFC 3230's Want-Digest and Digest.
func instanceDigests() []digestName {
	return []digestName{{"adler32", "adler32", true}, {"crc32c", "crc32c", false}, {"md5", "md5", false},
		{"sha-256", "sha256", false}, {"sha256", "sha256", false}}
}

// reprDigests are the names of RFC 9530's Want-Repr-Digest and Repr-Digest.
func reprDigests() []digestName {
	return []digestName{{"adler", "adler32", false}, {"adler32", "adler32", false}, {"crc32c", "crc32c", false},
		{"md5", "md5", false}, {"sha-256", "sha256", false}}
}

// maxDigests bounds the members of a header that are looked at.
const maxDigests = 32

// members splits the values of a header at commas.
func members(values []string) []string {
	var all []string
	for _, v := range values {
		for m := range strings.SplitSeq(v, ",") {
			if m = strings.TrimSpace(m); m != "" && len(all) < maxDigests {
				all = append(all, m)
			}
		}
	}
	return all
}

func lookup(names []digestName, name string) (digestName, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, n := range names {
		if n.name == name {
			return n, true
		}
	}
	return digestName{}, false
}

// wanted returns the checksum of highest preference in a Want-Digest
// ("adler32;q=1, md5;q=0.5") or Want-Repr-Digest ("sha-256=10, md5=3").
// Members that are unknown or not understood do not count; the zero name is none.
func wanted(names []digestName, values []string, mark string, most float64) (best digestName) {
	top := 0.0
	for _, m := range members(values) {
		name, text, given := strings.Cut(m, mark)
		weight := 1.0
		if given {
			weight = preference(text, mark)
		}
		if n, known := lookup(names, name); known && weight > top && weight <= most {
			best, top = n, weight
		}
	}
	return best
}

// preference reads what is behind a name: "q=0.5" after a semicolon, "5"
// after an equals sign. What cannot be read is 0, not wanted.
func preference(text, mark string) float64 {
	if mark == ";" {
		q, value, _ := strings.Cut(text, "=")
		if !strings.EqualFold(strings.TrimSpace(q), "q") {
			return 0
		}
		text = value
	}
	w, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(w) {
		return 0
	}
	return w
}

// wants returns what a request asks for: RFC 3230's and RFC 9530's.
func wants(h http.Header) (instance, repr digestName) {
	if v := h["Want-Digest"]; v != nil {
		instance = wanted(instanceDigests(), v, ";", 1)
	}
	if v := h["Want-Repr-Digest"]; v != nil {
		repr = wanted(reprDigests(), v, "=", 10)
	}
	return instance, repr
}

// setDigests writes the digest headers that were asked for; sum returns a
// checksum in package content's form.
func setDigests(h http.Header, instance, repr digestName, sum func(alg string) (string, error)) error {
	if instance.alg != "" {
		text, err := sum(instance.alg)
		if err != nil {
			return err
		}
		h["Digest"] = []string{instance.name + "=" + instance.encode(text)}
	}
	if repr.alg != "" {
		text, err := sum(repr.alg)
		if err != nil {
			return err
		}
		h["Repr-Digest"] = []string{repr.name + "=:" + repr.encode(text) + ":"}
	}
	return nil
}

// encode turns "algorithm:hex" into what a header has behind its name.
func (n digestName) encode(text string) string {
	_, digits, _ := strings.Cut(text, ":")
	if n.hex {
		return digits
	}
	raw, _ := hex.DecodeString(digits) // from hex.EncodeToString
	return base64.StdEncoding.EncodeToString(raw)
}

// stated returns the checksums that an upload says it has, in package
// content's form by algorithm. What is not known is left out.
func stated(h http.Header) map[string]string {
	sums := map[string]string{}
	add := func(names []digestName, values []string) {
		for _, m := range members(values) {
			name, value, _ := strings.Cut(m, "=")
			n, ok := lookup(names, name)
			if !ok {
				continue
			}
			value = strings.Trim(strings.TrimSpace(value), ":")
			raw, err := base64.StdEncoding.DecodeString(value)
			if n.hex || err != nil {
				sums[n.alg] = n.alg + ":" + strings.ToLower(value)
			} else {
				sums[n.alg] = n.alg + ":" + hex.EncodeToString(raw)
			}
		}
	}
	add(instanceDigests(), h["Digest"])
	add(reprDigests(), h["Repr-Digest"])
	add(reprDigests(), h["Content-Digest"])
	return sums
}
