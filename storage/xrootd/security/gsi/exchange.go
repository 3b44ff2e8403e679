package gsi

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"time"

	"weir/storage/gridcert"
	"weir/storage/xrootd/security"
)

// An exchange is one login: hello, the server's certificate, proof, and the proxy if the server
// requests it.
type exchange struct {
	method  *Method
	server  security.Server
	id      *gridcert.Identity
	offer   offer
	version int // the lower of the server's version and ours
	round   int
	named   bool    // the certificate has the server's name, without use of the DNS; checked if proxies are delegated
	tag     []byte  // to be signed by the server
	sealer  *sealer // with the agreed secret
}

// Seal encrypts data with the agreed secret of the login and appends it to b.
func (e *exchange) Seal(b, data []byte) ([]byte, error) {
	if e.sealer == nil {
		return b, malformed("the login ended before a key was agreed upon")
	}
	return e.sealer.seal(b, data), nil
}

// Next returns the first message for a nil challenge, the second for the server's response to it,
// and a proxy if the server requests a proxy after that.
func (e *exchange) Next(challenge []byte) ([]byte, error) {
	e.round++
	switch e.round {
	case 1:
		return e.hello(), nil
	case 2:
		return e.prove(challenge)
	case 3:
		if msg, err := parseBuffer(challenge); err == nil && msg.step == stepDelegate {
			return e.delegate(msg)
		}
	}
	return nil, malformed("the server asks for a message after the last one")
}

// delegates reports whether the server may request a proxy.
func (e *exchange) delegates() bool { return e.method.delegates && e.version >= signsAgreement }

// delegate returns the message with a proxy for the key that the server has generated, or with the
// reason for the lack of a proxy.
func (e *exchange) delegate(msg buffer) ([]byte, error) {
	if !e.delegates() || e.sealer == nil {
		return nil, unexpected(msg)
	}
	sealed, _ := msg.find(bucketMain)
	inner, err := e.sealer.unseal(sealed)
	if err != nil {
		return nil, err
	}
	main, err := parseBuffer(inner)
	if err != nil {
		return nil, err
	}
	tag, _ := main.find(bucketTag)
	signedTag, err := e.sign(tag)
	if err != nil {
		return nil, err
	}
	answer := bucket{bucketMessage, []byte("no proxy: only the DNS says that this is " + e.server.Host + "\x00")}
	if e.named {
		text, _ := main.find(bucketRequest)
		request, _ := pem.Decode(text)
		if request == nil {
			return nil, malformed("the server wants a proxy and sends no request for it")
		}
		proxy, err := e.id.Delegate(request.Bytes, e.method.clock())
		if err != nil {
			return nil, err
		}
		answer = bucket{bucketCertificates, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy})}
	}
	return encode(stepDelegated, bucket{bucketModule, []byte(e.offer.module)},
		bucket{bucketMain, e.sealer.seal(nil, encode(stepDelegated, bucket{bucketSignedTag, signedTag}, answer))}), nil
}

// Hint describes the identity that the client presented.
func (e *exchange) Hint() string {
	return fmt.Sprintf("the client was %s, whose proxy lasts until %s", e.id.Subject, e.id.Until.UTC().Format(time.RFC3339))
}

// Options of clients.
const (
	offersProxy = 0x01 // the server shall request a proxy
	signsProxy  = 0x04 // we sign a proxy if the server requests it
	hasProxy    = 0x80 // sent by all clients of proxies
)

func (e *exchange) hello() []byte {
	e.tag = newTag()
	options := uint32(hasProxy)
	if e.delegates() {
		options |= offersProxy | signsProxy
	}
	module := e.offer.module
	if e.version >= signsAgreement && !e.offer.padded {
		module += "nopad"
	}
	return encode(stepHello,
		bucket{bucketModule, []byte(module)},
		bucket{bucketVersion, number(uint32(e.method.version))},
		bucket{bucketIssuer, []byte(e.id.Issuer)},
		bucket{bucketOptions, number(options)},
		bucket{bucketMain, encode(stepHello, bucket{bucketTag, e.tag})},
	)
}

// newTag returns eight random letters: 48 bits that a server has to sign before it receives the
// client's identity.
func newTag() []byte {
	var raw [6]byte
	_, _ = rand.Read(raw[:]) // never fails
	tag := base64.StdEncoding.AppendEncode(nil, raw[:])
	return bytes.ReplaceAll(tag, []byte("+"), []byte(".")) // the alphabet of crypt(3), as in the reference
}

// An answer is the contents of the server's message.
type answer struct {
	certificates []byte
	agreement    []byte // signed, if the version requires it
	ciphers      string
	digests      string
	signedTag    []byte // our tag
	tag          []byte // the server's tag
}

func (e *exchange) parseAnswer(challenge []byte) (a answer, err error) {
	msg, err := parseBuffer(challenge)
	if err != nil {
		return a, err
	}
	if msg.step != stepCertificate {
		return a, unexpected(msg)
	}
	inner, _ := msg.find(bucketMain)
	main, err := parseBuffer(inner)
	if err != nil {
		return a, malformed("the server's message has no main part")
	}
	agreement := uint32(bucketAgreement)
	if e.version < signsAgreement {
		agreement = bucketPublic
	}
	a.ciphers, a.digests = "", "sha256"
	if list, ok := msg.find(bucketCiphers); ok {
		a.ciphers = string(list)
	}
	if list, ok := msg.find(bucketDigests); ok {
		a.digests = string(list)
	}
	for _, part := range []struct {
		from buffer
		kind uint32
		to   *[]byte
		what string
	}{
		{msg, bucketCertificates, &a.certificates, "certificate"},
		{msg, agreement, &a.agreement, "half of the agreement"},
		{main, bucketSignedTag, &a.signedTag, "signature of our tag"},
		{main, bucketTag, &a.tag, "tag for us to sign"},
	} {
		data, ok := part.from.find(part.kind)
		if !ok || len(data) == 0 {
			return a, malformed("the server's message has no %s", part.what)
		}
		*part.to = data
	}
	return a, nil
}

func unexpected(msg buffer) error {
	if msg.step == stepDelegate {
		return malformed("the server asks for a delegated proxy, which it was not offered")
	}
	text, _ := msg.find(bucketMessage)
	return malformed("the server takes step %d where 2001 was due %.200q", msg.step, text)
}

// prove verifies the server and returns the message with the client's credentials.
func (e *exchange) prove(challenge []byte) ([]byte, error) {
	a, err := e.parseAnswer(challenge)
	if err != nil {
		return nil, err
	}
	s, err := chooseSuite(a.ciphers)
	if err != nil {
		return nil, err
	}
	digest, err := chooseDigest(a.digests)
	if err != nil {
		return nil, err
	}
	agreement, err := e.verifyServer(a)
	if err != nil {
		return nil, err
	}
	text, y, err := splitHalf(agreement)
	if err != nil {
		return nil, err
	}
	group, err := e.method.groups.find(text)
	if err != nil {
		return nil, err
	}
	own, err := group.half(e.id, e.method.clock())
	if err != nil {
		return nil, err
	}
	secret, err := group.secret(own, y, e.offer.padded)
	if err != nil {
		return nil, err
	}
	if e.sealer, err = s.sealer(secret, e.version >= signsAgreement); err != nil {
		return nil, err
	}
	return e.proof(a, s.name, digest, own)
}

// verifyServer verifies the server's certificate, its possession of the certificate's key and the
// freshness of its response, and returns its half of the agreement.
func (e *exchange) verifyServer(a answer) ([]byte, error) {
	m := e.method
	cert, key, err := parseShown(a.certificates)
	if err != nil {
		return nil, err
	}
	if err := m.trust.Verify(cert, m.clock()); err != nil {
		return nil, err
	}
	if !m.trust.Insecure {
		if err := m.names.Check(cert, e.server.Host, e.server.Address, m.clock()); err != nil {
			return nil, err
		}
		e.named = e.delegates() && m.names.Fits(cert, e.server.Host)
	}
	tag, err := recoverBlocks(key, a.signedTag)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(tag, e.tag) {
		return nil, gridcert.Refuse("%s signed another tag than the one it was sent: the connection may be intercepted", e.server.Host)
	}
	if e.version < signsAgreement {
		return a.agreement, nil
	}
	return recoverBlocks(key, a.agreement)
}

// parseShown reads the certificate that the server presents; there must be exactly one.
func parseShown(text []byte) (*x509.Certificate, *rsa.PublicKey, error) {
	all, err := gridcert.ParseCertificates(text)
	if err != nil {
		return nil, nil, malformed("the server's certificate: %v", err)
	}
	if len(all) != 1 {
		return nil, nil, malformed("the server shows %d certificates, not one", len(all))
	}
	key, ok := all[0].PublicKey.(*rsa.PublicKey)
	if !ok {
		return nil, nil, gridcert.Refuse("the server's certificate (%s) has an %v key; the protocol knows RSA only",
			all[0].Subject, all[0].PublicKeyAlgorithm)
	}
	return all[0], key, nil
}

// longestTag is more than the length of any server's tag. The client signs the tag itself and not a
// digest of it, so a longer tag could be the digest of a certificate that gives our identity to
// others; the shortest such digests have 34 bytes.
const longestTag = 32

// sign signs a tag of the server.
func (e *exchange) sign(tag []byte) ([]byte, error) {
	if len(tag) == 0 || len(tag) > longestTag {
		return nil, malformed("the server's tag has %d bytes", len(tag))
	}
	return signBlocks(e.id.Key, tag)
}

// proof returns the second message.
func (e *exchange) proof(a answer, suite, digest string, own *half) ([]byte, error) {
	signedTag, err := e.sign(a.tag)
	if err != nil {
		return nil, err
	}
	main := []bucket{{bucketSignedTag, signedTag}, {bucketCertificates, e.id.ChainPEM}}
	if e.method.user != "" {
		main = append(main, bucket{bucketUser, []byte(e.method.user)})
	}
	main = append(main, bucket{bucketTag, newTag()})
	sealed := e.sealer.seal(nil, encode(stepProof, main...))
	module := bucket{bucketModule, []byte(e.offer.module)}
	if !e.sealer.vector {
		return encode(stepProof, module,
			bucket{bucketCiphers, []byte(suite)}, bucket{bucketDigests, []byte(digest)},
			bucket{bucketPublic, own.public}, bucket{bucketMain, sealed}), nil
	}
	if !e.offer.padded {
		module.data = append(module.data, "nopad"...)
	}
	return encode(stepProof, module,
		bucket{bucketCiphers, []byte(suite + "#16")}, bucket{bucketDigests, []byte(digest)},
		bucket{bucketAgreement, own.signed}, bucket{bucketPublic, e.id.PublicPEM},
		bucket{bucketMain, sealed}), nil
}
