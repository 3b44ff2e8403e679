package tlsconn

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Types of records (RFC 8446, 5.1).
const (
	typeChangeCipherSpec = 20
	typeAlert            = 21
	typeHandshake        = 22
	typeData             = 23
)

// Alerts that this side sends (RFC 8446, 6).
const (
	alertCloseNotify       = 0
	alertUnexpectedMessage = 10
	alertBadRecordMAC      = 20
	alertRecordOverflow    = 22
	alertDecodeError       = 50
	alertProtocolVersion   = 70
	alertInternalError     = 80
	alertUserCanceled      = 90
	alertNoRenegotiation   = 100
)

// ErrRecord is wrapped by the errors of records that do not follow the protocol or were altered on
// the way.
var ErrRecord = errors.New("TLS")

// A recordError is a fault of the server's records, of which an alert notifies it.
type recordError struct {
	alert byte
	text  string
}

// Error returns the text, which begins with "TLS: ".
func (e *recordError) Error() string { return "TLS: " + e.text }

// Unwrap returns ErrRecord.
func (*recordError) Unwrap() error { return ErrRecord }

func wrong(alert byte, format string, args ...any) error {
	return &recordError{alert, fmt.Sprintf(format, args...)}
}

// nonceOf makes the nonce of the next record; explicit is the part that the record contains.
func (h *half) nonceOf(explicit []byte) []byte {
	h.nonce = h.iv
	if h.explicit > 0 {
		copy(h.nonce[4:], explicit)
		return h.nonce[:]
	}
	seq := binary.BigEndian.Uint64(h.nonce[4:]) ^ h.seq
	binary.BigEndian.PutUint64(h.nonce[4:], seq)
	return h.nonce[:]
}

// extra12 makes the additional data of TLS 1.2.
func (h *half) extra12(head []byte, size int) []byte {
	b := binary.BigEndian.AppendUint64(h.extra[:0], h.seq)
	b = append(b, head[:3]...)
	return binary.BigEndian.AppendUint16(b, uint16(size))
}

// checkHead returns the length of a record.
func (c *Conn) checkHead(head []byte) (int, error) {
	if head[1] != 3 || head[2] != 3 {
		return 0, wrong(alertProtocolVersion, "record %d has version %x%02x, expected 303", c.in.seq, head[1], head[2])
	}
	n, most := int(binary.BigEndian.Uint16(head[3:])), maxCipher12
	if c.is13() {
		most = maxCipher13
	}
	if n > most {
		return 0, wrong(alertRecordOverflow, "record %d has %d bytes, more than the %d allowed", c.in.seq, n, most)
	}
	return n, nil
}

// open decrypts a record into dst, or in place if dst is nil. It returns the type of the content.
func (c *Conn) open(dst, record []byte) (typ byte, data []byte, err error) {
	h := &c.in
	head, sealed := record[:headSize], record[headSize:]
	typ = head[0]
	if c.is13() {
		if typ == typeChangeCipherSpec { // ignored without being decrypted (RFC 8446, D.4)
			return typ, sealed, nil
		}
		data, err = h.aead.Open(place(dst, sealed), h.nonceOf(nil), sealed, head)
	} else {
		if len(sealed) < h.explicit+h.aead.Overhead() {
			return 0, nil, wrong(alertBadRecordMAC, "record %d is too short for its checksum", h.seq)
		}
		nonce := h.nonceOf(sealed[:h.explicit])
		sealed = sealed[h.explicit:]
		data, err = h.aead.Open(place(dst, sealed), nonce, sealed, h.extra12(head, len(sealed)-h.aead.Overhead()))
	}
	if err != nil {
		return 0, nil, wrong(alertBadRecordMAC, "record %d is not authentic: it was altered, lost or repeated on the way", h.seq)
	}
	if c.is13() {
		if typ != typeData {
			return 0, nil, wrong(alertUnexpectedMessage, "record %d of type %d", h.seq, typ)
		}
		if typ, data, err = unpad(data); err != nil {
			return 0, nil, err
		}
	}
	h.seq++
	if len(data) > maxPlain {
		return 0, nil, wrong(alertRecordOverflow, "a record with %d bytes of content", len(data))
	}
	return typ, data, nil
}

// place returns where to decrypt to.
func place(dst, sealed []byte) []byte {
	if dst == nil {
		return sealed[:0]
	}
	return dst[:0]
}

// unpad takes padding and type from the end of a record's content (RFC 8446, 5.4).
func unpad(data []byte) (typ byte, content []byte, err error) {
	if len(data) > maxPlain+1 {
		return 0, nil, wrong(alertRecordOverflow, "a record with %d bytes of content and padding", len(data))
	}
	for i := len(data) - 1; i >= 0; i-- {
		if data[i] != 0 {
			return data[i], data[:i], nil
		}
	}
	return 0, nil, wrong(alertUnexpectedMessage, "a record of padding alone")
}

// overhead returns the number of bytes that a record of payload has in addition to it, without head
// and padding.
func (c *Conn) overhead() int {
	n := c.in.explicit + c.in.aead.Overhead()
	if c.is13() {
		n++ // the type
	}
	return n
}

// seal appends a record with the content p to dst.
func (c *Conn) seal(dst []byte, typ byte, p []byte) []byte {
	h, at := &c.out, len(dst)
	if c.is13() {
		dst = append(dst, typeData, 3, 3, 0, 0)
		dst = append(append(dst, p...), typ)
		content := dst[at+headSize:]
		binary.BigEndian.PutUint16(dst[at+3:], uint16(len(content)+h.aead.Overhead()))
		sealed := h.aead.Seal(content[:0], h.nonceOf(nil), content, dst[at:at+headSize])
		h.seq++
		return dst[:at+headSize+len(sealed)]
	}
	dst = append(dst, typ, 3, 3, 0, 0)
	binary.BigEndian.PutUint16(dst[at+3:], uint16(h.explicit+len(p)+h.aead.Overhead()))
	if h.explicit > 0 {
		dst = binary.BigEndian.AppendUint64(dst, h.seq)
	}
	body := len(dst)
	nonce := h.nonceOf(dst[body-h.explicit : body])
	dst = h.aead.Seal(dst[:body], nonce, p, h.extra12(dst[at:at+headSize], len(p)))
	h.seq++
	return dst
}
