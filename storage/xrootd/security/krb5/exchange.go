package krb5

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// maxHops is the maximum number of realms that may refer us to each other. From the third realm on,
// the library's requests have a wrong name for the client's realm.
const maxHops = 3

// logIn obtains a ticket-granting ticket with the keytab (RFC 4120, 3.1).
func (k *Client) logIn(ctx context.Context) (*ticket, error) {
	req, err := messages.NewASReqForTGT(k.user.realm, k.settings.lib, k.user.name)
	if err != nil {
		return nil, err
	}
	allowed := k.settings.lib.LibDefaults.DefaultTktEnctypeIDs
	req.ReqBody.EType = slices.DeleteFunc(slices.Clone(allowed), func(id int32) bool { return !slices.Contains(k.keys, id) })
	if len(req.ReqBody.EType) == 0 {
		return nil, denied("the %s has keys of the encryption types %v only, allowed are %v", k.where, k.keys, allowed)
	}
	reply, err := k.sendLogin(ctx, req)
	if refusal, ok := errors.AsType[messages.KRBError](err); ok && refusal.ErrorCode == errorcode.KDC_ERR_PREAUTH_REQUIRED {
		if err = k.prove(&req, refusal.EData); err == nil {
			reply, err = k.sendLogin(ctx, req)
		}
	}
	if err != nil {
		return nil, err
	}
	t, err := k.openLogin(req, reply)
	if err != nil {
		return nil, denied("the answer of realm %s's KDC cannot be read with the %s: is its key of %s outdated? %w", k.user.realm,
			k.where, k.user, err)
	}
	return t, nil
}

// openLogin reads the response to a login.
func (k *Client) openLogin(req messages.ASReq, reply []byte) (t *ticket, err error) {
	var rep messages.ASRep
	err = guard("answer of the KDC", func() error {
		if err := rep.Unmarshal(reply); err != nil {
			return err
		}
		if _, err := rep.Verify(k.settings.lib, k.login, req); err != nil {
			return err
		}
		t, err = k.accept(rep.KDCRepFields)
		return err
	})
	return t, err
}

func (k *Client) sendLogin(ctx context.Context, req messages.ASReq) ([]byte, error) {
	b, err := req.Marshal()
	if err != nil {
		return nil, err
	}
	return k.settings.ask(ctx, k.user.realm, b)
}

// prove adds an encrypted time stamp, in the first of the KDC's encryption types for which the
// keytab has a key.
func (k *Client) prove(req *messages.ASReq, hints []byte) error {
	var offers []int32
	err := guard("answer of the KDC", func() error {
		var all types.PADataSequence
		if err := all.Unmarshal(hints); err != nil {
			return err
		}
		for _, p := range all {
			if p.PADataType != patype.PA_ETYPE_INFO2 {
				continue
			}
			info, err := p.GetETypeInfo2()
			if err != nil {
				return err
			}
			for _, i := range info {
				offers = append(offers, i.EType)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	offers = append(offers, req.ReqBody.EType...) // a KDC without hints accepts the requested types
	i := slices.IndexFunc(offers, func(id int32) bool { return slices.Contains(req.ReqBody.EType, id) })
	key, version, err := k.login.Keytab().GetEncryptionKey(k.user.name, k.user.realm, 0, offers[i])
	if err != nil {
		return err
	}
	stamp, err := types.GetPAEncTSEncAsnMarshalled()
	if err != nil {
		return err
	}
	sealed, err := crypto.GetEncryptedData(stamp, key, keyusage.AS_REQ_PA_ENC_TIMESTAMP, version)
	if err != nil {
		return err
	}
	value, err := sealed.Marshal()
	req.PAData = append(req.PAData, types.PAData{PADataType: patype.PA_ENC_TIMESTAMP, PADataValue: value})
	return err
}

// grant obtains a ticket for a service with a ticket-granting ticket (RFC 4120, 3.3), across realms
// if necessary.
func (k *Client) grant(ctx context.Context, granter *ticket, s principal) (*ticket, error) {
	realm := granter.client.realm
	for range maxHops {
		want := s.name
		if s.realm != realm {
			want = types.PrincipalName{NameType: nametype.KRB_NT_SRV_INST, NameString: []string{"krbtgt", s.realm}}
		}
		t, err := k.askGranter(ctx, realm, granter, want)
		if err != nil {
			return nil, err
		}
		names := t.ticket.SName.NameString
		if len(names) != 2 || names[0] != "krbtgt" || s.name.NameString[0] == "krbtgt" {
			return t, nil
		}
		if s.realm == realm {
			s.realm = names[1] // the KDC has the authoritative realm of the service
		}
		realm, granter = names[1], t
	}
	return nil, denied("no way to %s: more than %d realms on the way", s, maxHops)
}

func (k *Client) askGranter(ctx context.Context, realm string, granter *ticket, want types.PrincipalName) (*ticket, error) {
	var req messages.TGSReq
	var b []byte
	err := guard("ticket", func() error {
		var err error
		if req, err = messages.NewTGSReq(k.user.name, realm, k.settings.lib, granter.ticket, granter.key, want, false); err == nil {
			b, err = req.Marshal()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	reply, err := k.settings.ask(ctx, realm, b)
	if err != nil {
		return nil, err
	}
	t, err := k.openGrant(granter, req, reply)
	if err != nil {
		return nil, fmt.Errorf("answer of realm %s's KDC: %w", clip(realm), err)
	}
	return t, nil
}

// openGrant reads the response to a request that was authenticated with granter.
func (k *Client) openGrant(granter *ticket, req messages.TGSReq, reply []byte) (t *ticket, err error) {
	var rep messages.TGSRep
	err = guard("answer of the KDC", func() error {
		if err := rep.Unmarshal(reply); err != nil {
			return err
		}
		if err := rep.DecryptEncPart(granter.key); err != nil {
			return err
		}
		if _, err := rep.Verify(k.settings.lib, req); err != nil {
			return err
		}
		t, err = k.accept(rep.KDCRepFields)
		return err
	})
	return t, err
}

// accept makes a ticket from a KDC's response.
func (k *Client) accept(rep messages.KDCRepFields) (*ticket, error) {
	if len(rep.Ticket.SName.NameString) == 0 {
		return nil, errors.New("a ticket without a service name")
	}
	t := &ticket{
		client: k.user, service: principal{rep.Ticket.SName, rep.Ticket.Realm},
		ticket: rep.Ticket, key: rep.DecryptedEncPart.Key,
		start: rep.DecryptedEncPart.StartTime, end: rep.DecryptedEncPart.EndTime,
	}
	if t.start.IsZero() {
		t.start = rep.DecryptedEncPart.AuthTime
	}
	return t, nil
}

// explain adds to a KDC's refusal its meaning and a remedy.
func (k *Client) explain(err error, s principal) error {
	var r messages.KRBError
	if !errors.As(err, &r) {
		return err
	}
	switch r.ErrorCode {
	case errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN:
		return denied("the KDC of realm %s does not know %s: %w", k.user.realm, k.user, r)
	case errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN:
		return denied("the KDC does not know the service %s, as which the server presents itself: %w", s, r)
	case errorcode.KDC_ERR_PREAUTH_FAILED, errorcode.KRB_AP_ERR_BAD_INTEGRITY:
		return denied("the KDC does not take the key of %s in the %s: it was changed since? %w", k.user, k.where, r)
	case errorcode.KRB_AP_ERR_SKEW:
		return denied("the clocks of this machine and of the KDC differ by %s: %w", time.Since(r.STime).Round(time.Second), r)
	case errorcode.KRB_AP_ERR_TKT_EXPIRED, errorcode.KDC_ERR_NEVER_VALID:
		return denied("the KDC finds the ticket of %s (%s) expired: %w", k.user, k.where, r)
	case errorcode.KDC_ERR_CLIENT_REVOKED, errorcode.KDC_ERR_KEY_EXPIRED, errorcode.KDC_ERR_NAME_EXP:
		return denied("the KDC says that %s is locked or expired: %w", k.user, r)
	case errorcode.KDC_ERR_WRONG_REALM:
		return denied("%s is not in this KDC's realm: %w", k.user, r)
	}
	return denied("the KDC refuses a ticket for %s to %s: %w", s, k.user, r)
}

const (
	patience = 10 * time.Second // for a ticket, in total
	perKDC   = 3 * time.Second  // for one response of one KDC
	maxReply = 1 << 20          // bytes of a response
	errorTag = 0x7e             // first byte of a KRB-ERROR: APPLICATION 30
)

// ask sends a request to the realm's KDCs, one after the other until one of them responds. A
// refusal is a messages.KRBError.
func (s *settings) ask(ctx context.Context, realm string, request []byte) ([]byte, error) {
	servers, err := s.servers(ctx, realm)
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, server := range servers {
		reply, err := roundTrip(ctx, server, request)
		if err == nil {
			return reply, refusal(reply)
		}
		failures = append(failures, fmt.Errorf("the KDC %s of realm %s does not answer: %w", server, clip(realm), err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(failures...)
}

// refusal returns a KDC's reply as an error if it is a KRB-ERROR, and nil otherwise.
func refusal(reply []byte) error {
	if len(reply) == 0 || reply[0] != errorTag {
		return nil
	}
	var k messages.KRBError
	if err := guard("answer of the KDC", func() error { return k.Unmarshal(reply) }); err != nil {
		return err
	}
	return k
}

// roundTrip sends one request over TCP: all current KDCs support it, and it does not limit the size
// of responses.
func roundTrip(ctx context.Context, server string, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, perKDC)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	reply, err := frames(conn, request)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return reply, err
}

// frames exchanges messages with the framing of RFC 4120, 7.2.2.
func frames(conn io.ReadWriter, request []byte) ([]byte, error) {
	framed := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(request)), uint32(len(request)))
	if _, err := conn.Write(append(framed, request...)); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > maxReply {
		return nil, fmt.Errorf("it announces %d bytes: this is no KDC", n)
	}
	reply := make([]byte, n)
	_, err := io.ReadFull(conn, reply)
	return reply, err
}
