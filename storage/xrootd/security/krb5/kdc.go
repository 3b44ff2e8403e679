package krb5

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jcmturner/gokrb5/v8/messages"
)

const (
	patience = 10 * time.Second // for a ticket, all in all
	perKDC   = 3 * time.Second  // for one answer of one KDC
	maxReply = 1 << 20          // bytes of one
	errorTag = 0x7e             // what a KRB-ERROR begins with: APPLICATION 30
)

// ask sends a request to the realm's KDCs, one after the other until one
// answers. A refusal is a messages.KRBError.
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

// refusal returns the error that a KDC's reply is, or nil.
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

// roundTrip sends one request over TCP: every KDC of today takes it, and
// answers of any size fit.
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

// frames exchanges messages as RFC 4120, 7.2.2, frames them.
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
