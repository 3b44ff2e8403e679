package gsi

import (
	"bytes"
	"crypto/rand"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"time"

	"weir/storage/gridcert"
)

// Limits of the parameters that servers may request. XRootD up to 5.5 generates a prime of 512 bits
// at each start of a server, later versions share a prime of 3072 bits; the cost of the check grows
// with the third power.
const (
	leastPrime = 512
	mostPrime  = 4096
	mostGroups = 4096 // more than the number of servers of a site
)

// halfLife is the time for which our half of an agreement is used. The halves of servers differ
// from login to login, so the secrets do. Nothing confidential is encrypted with them: public
// certificates and a signature.
const halfLife = 10 * time.Minute

// A group is a prime and a generator as a server states them, and our half of agreements in it.
type group struct {
	text []byte // PEM as we write it: the server must not choose the bytes that we sign
	p, g *big.Int

	check sync.Once
	err   error

	mutex sync.Mutex
	own   *half
}

// A half is our part of an agreement, ready to be sent.
type half struct {
	id      *gridcert.Identity
	created time.Time
	x       *big.Int
	public  []byte // in the reference's format
	signed  []byte // the same, signed with the key of id
}

// groups are the groups that servers have stated. Each prime is tested for primality once: the test
// takes longer than the rest of a login.
type groups struct {
	mutex sync.Mutex
	known map[string]*group
}

func newGroups() *groups { return &groups{known: map[string]*group{}} }

// find returns the group stated in text, after verifying it.
func (gs *groups) find(text []byte) (*group, error) {
	gs.mutex.Lock()
	g := gs.known[string(text)]
	if g == nil {
		var err error
		if g, err = parseGroup(text); err != nil {
			gs.mutex.Unlock()
			return nil, err
		}
		if len(gs.known) >= mostGroups {
			clear(gs.known) // a server that makes up groups wastes its own time
		}
		gs.known[string(text)] = g
	}
	gs.mutex.Unlock()
	g.check.Do(func() { g.err = g.verify() })
	return g, g.err
}

// parseGroup reads a PKCS #3 block in PEM.
func parseGroup(text []byte) (*group, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "DH PARAMETERS" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, malformed("the server's half of the agreement has no DH PARAMETERS")
	}
	var stated struct {
		P, G   *big.Int
		Length int `asn1:"optional"`
	}
	if rest, err := asn1.Unmarshal(block.Bytes, &stated); err != nil || len(rest) > 0 {
		return nil, malformed("the server's DH PARAMETERS are not what they say")
	}
	if n := stated.P.BitLen(); stated.P.Sign() < 0 || n < leastPrime || n > mostPrime {
		return nil, malformed("the server wants to agree on %d bits, sensible are %d to %d", n, leastPrime, mostPrime)
	}
	return &group{text: pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}), p: stated.P, g: stated.G}, nil
}

// verify checks that the number is a prime, and a safe prime, so that there are no small subgroups
// into which a malicious server could force us.
func (g *group) verify() error {
	one := big.NewInt(1)
	last := new(big.Int).Sub(g.p, one)
	if g.g.Cmp(one) <= 0 || g.g.Cmp(last) >= 0 {
		return malformed("the server's generator is out of range")
	}
	const rounds = 4 // in addition to the Baillie-PSW test
	if g.p.Bit(0) == 0 || !new(big.Int).Rsh(last, 1).ProbablyPrime(rounds) || !g.p.ProbablyPrime(rounds) {
		return malformed("the server wants to agree with a number of %d bits that is no safe prime", g.p.BitLen())
	}
	return nil
}

// half returns our half for an identity.
func (g *group) half(id *gridcert.Identity, now time.Time) (*half, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.own != nil && g.own.id == id && now.Sub(g.own.created) < halfLife {
		return g.own, nil
	}
	raw := make([]byte, g.exponent()/8)
	_, _ = rand.Read(raw) // never fails
	raw[0] |= 0x80
	x := new(big.Int).SetBytes(raw)
	h := &half{id: id, created: now, x: x}
	y := new(big.Int).Exp(g.g, x, g.p)
	h.public = fmt.Appendf(bytes.Clone(g.text), "---BPUB---%X---EPUB---", y.Bytes())
	var err error
	if h.signed, err = signBlocks(id.Key, h.public); err != nil {
		return nil, err
	}
	g.own = h
	return h, nil
}

// exponent returns the number of bits of our exponent: twice the strength of the prime according to
// RFC 7919, section 5.2, and some more.
func (g *group) exponent() int {
	switch n := g.p.BitLen(); {
	case n <= 2048:
		return 256
	case n <= 3072:
		return 288
	}
	return 352
}

// secret returns the secret that h and the server's y agree on. If padded, it has the length of the
// prime; otherwise it has no leading zeros.
func (g *group) secret(h *half, y *big.Int, padded bool) ([]byte, error) {
	last := new(big.Int).Sub(g.p, big.NewInt(1))
	if y.Cmp(big.NewInt(1)) <= 0 || y.Cmp(last) >= 0 {
		return nil, malformed("the server's half of the agreement is out of range")
	}
	s := new(big.Int).Exp(y, h.x, g.p)
	if !padded {
		return s.Bytes(), nil
	}
	return s.FillBytes(make([]byte, (g.p.BitLen()+7)/8)), nil
}

// splitHalf splits a server's half: the group in PEM, and the number between its marks.
func splitHalf(data []byte) (text []byte, y *big.Int, err error) {
	text, rest, begun := bytes.Cut(data, []byte("---BPUB---"))
	digits, _, ended := bytes.Cut(rest, []byte("---EPUB---"))
	if !begun || !ended || len(digits) == 0 || len(digits) > mostPrime {
		return nil, nil, malformed("the server's half of the agreement has no public number")
	}
	if len(bytes.Trim(digits, "0123456789ABCDEFabcdef")) > 0 {
		return nil, nil, malformed("the server's half of the agreement is no hexadecimal number")
	}
	y, _ = new(big.Int).SetString(string(digits), 16)
	return text, y, nil
}
