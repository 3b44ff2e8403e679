package gridcert

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"time"
)

// revocations are the times of revocation, by the name of the issuer and the serial number.
type revocations map[string]map[string]time.Time

// add adds the entries of lists that the authority signed. Lists that have expired still count, as they do for the reference; lists
// without a valid signature do not.
func (r revocations) add(by *x509.Certificate, lists []*pkix.CertificateList) {
	for _, list := range lists {
		if by.CheckCRLSignature(list) != nil { //nolint:staticcheck // see parseRevocations
			continue
		}
		serials := r[string(by.RawSubject)]
		if serials == nil {
			serials = map[string]time.Time{}
			r[string(by.RawSubject)] = serials
		}
		for _, entry := range list.TBSCertList.RevokedCertificates {
			serials[serial(entry.SerialNumber)] = entry.RevocationTime.UTC()
		}
	}
}

// find returns the time at which a certificate was revoked, and whether it was.
func (r revocations) find(c *x509.Certificate) (at time.Time, revoked bool) {
	at, revoked = r[string(c.RawIssuer)][serial(c.SerialNumber)]
	return at, revoked
}

func serial(n *big.Int) string { return string(n.Bytes()) }
