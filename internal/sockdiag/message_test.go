package sockdiag

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"
)

// answer returns the kernel's answer for one socket: its body with attributes.
func answer(attributes ...[]byte) []byte {
	body := make([]byte, socketSize)
	body[0], body[1] = familyInet, byte(Established)
	binary.BigEndian.PutUint16(body[4:], 1234)
	copy(body[8:], []byte{127, 0, 0, 1})
	binary.NativeEndian.PutUint32(body[68:], 77)
	for _, a := range attributes {
		body = append(body, a...)
	}
	return append(appendHeader(nil, headerSize+len(body), typeSocket, 2, 5), body...)
}

func attribute(kind uint16, b []byte) []byte {
	a := binary.NativeEndian.AppendUint16(nil, uint16(4+len(b)))
	a = append(binary.NativeEndian.AppendUint16(a, kind), b...)
	for len(a)%4 != 0 {
		a = append(a, 0)
	}
	return a
}

// The lengths of struct tcp_info in kernels from Linux 2.6 on give the fields up to their end.
func TestInfoOfOldKernels(t *testing.T) {
	full := bytes.Repeat([]byte{1}, 248)
	for _, size := range []int{0, 3, 104, 192, 224, 232, 248} {
		i := parseInfo(full[:size])
		if (i.RTO != 0) != (size > 8) || (i.TotalRetrans != 0) != (size >= 104) || (i.DeliveryRate != 0) != (size >= 192) ||
			(i.BytesSent != 0) != (size >= 224) || (i.SndWnd != 0) != (size >= 232) || (i.RcvWnd != 0) != (size >= 248) {
			t.Errorf("%d bytes: %+v", size, i)
		}
	}
	none := parseInfo(bytes.Repeat([]byte{0xff}, 248))
	if none.MinRTT != 0 || none.PacingRate != 0 || none.Ssthresh != 0 || none.Busy != 0 {
		t.Errorf("numbers that mean no value: %+v", none)
	}
}

// A message with odd lengths gives the fields that are in it.
func TestParseSocket(t *testing.T) {
	names := map[string]string{}
	b := answer(attribute(attributeCongestion, []byte("cubic\x00")), attribute(attributeInfo, []byte{1, 0, 0, 0, 3, 0, 0}))
	m, rest, ok := nextMessage(b)
	if !ok || len(rest) != 0 || m.kind != typeSocket || m.sequence != 5 {
		t.Fatalf("%+v, %d bytes left", m, len(rest))
	}
	var s Socket
	id, ok := parseSocket(m.body, &s, names)
	if !ok || s.Congestion != "cubic" || s.Backoff != 3 || s.RTO != 0 || s.Inode != 77 || s.Local.String() != "127.0.0.1:1234" ||
		id.family != familyInet || id.id[0] != 1234>>8 {
		t.Errorf("%+v", s)
	}
}

// No bytes from the kernel, whole or cut off, stop the program or give times below zero.
func FuzzAnswer(f *testing.F) {
	whole := answer(attribute(attributeCongestion, []byte("bbr\x00")), attribute(attributeInfo, bytes.Repeat([]byte{7}, 248)),
		attribute(attributeMemory, make([]byte, 36)))
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(append(bytes.Clone(whole), whole[:20]...))
	f.Add(appendHeader(nil, 20, typeError, 0, 1))
	f.Add(appendHeader(nil, 1, typeSocket, 0, 1))
	f.Add([]byte(strings.Repeat("\xff", 99)))
	f.Fuzz(func(t *testing.T, b []byte) {
		names := map[string]string{}
		var trace Trace
		for count, before := 0, len(b)+1; ; count++ {
			m, rest, ok := nextMessage(b)
			if !ok {
				break
			}
			if len(rest) >= before {
				t.Fatal("no progress")
			}
			before, b = len(rest), rest
			_ = m.status()
			var s Socket
			if _, ok := parseSocket(m.body, &s, names); !ok {
				continue
			}
			for _, d := range []time.Duration{s.RTT, s.RTTVar, s.MinRTT, s.RcvRTT, s.RTO, s.Busy, s.RwndLimited, s.SndbufLimited} {
				if d < 0 {
					t.Errorf("%v in %+v", d, s)
				}
			}
			trace.Add(time.Duration(count)*time.Second, &s)
		}
		if len(trace.In) > mostBins {
			t.Errorf("%d bins", len(trace.In))
		}
	})
}
