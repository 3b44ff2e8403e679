package krb5

import (
	"time"

	"github.com/jcmturner/gokrb5/v8/iana"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// request makes an AP-REQ (RFC 4120, 5.5.1) of the time now.
func (t *ticket) request(now time.Time) ([]byte, error) {
	a := types.Authenticator{
		AVNO: iana.PVNO, CRealm: t.client.realm, CName: t.client.name,
		Cusec: now.Nanosecond() / 1000, CTime: now,
	}
	r, err := messages.NewAPReq(t.ticket, t.key, a)
	if err != nil {
		return nil, err
	}
	return r.Marshal()
}
