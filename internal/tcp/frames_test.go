package tcp

import (
	"errors"
	"io"
	"net"
	"testing"
)

// TestDiscardFrames drops frames of various lengths, and reads the content of the last frame.
func TestDiscardFrames(t *testing.T) {
	sizes := []int{0, 1, 5, 300_000, 70_000, 2}
	port := server(t, "127.0.0.1:0", func(c *net.TCPConn) {
		for i, n := range sizes {
			frame := append([]byte{byte(i), 0, byte(n >> 16), byte(n >> 8), byte(n)}, make([]byte, n)...)
			for len(frame) > 0 { // in odd pieces
				piece := frame[:min(len(frame), 777)]
				if _, err := c.Write(piece); err != nil {
					return
				}
				frame = frame[len(piece):]
			}
		}
		_, _ = c.Write([]byte("abc"))
		_ = c.Close()
	})
	c := dial(t, dialer(t), "127.0.0.1", port)
	seen := 0
	f := &Frames{Rest: func() int64 { return 0 }}
	f.Next = func() (int64, bool) {
		if seen != int(f.Head[0]) {
			t.Errorf("frame %d has the head of frame %d", seen, f.Head[0])
		}
		seen++
		return int64(f.Head[2])<<16 | int64(f.Head[3])<<8 | int64(f.Head[4]), seen < len(sizes)
	}
	if err := c.DiscardFrames(f); err != nil || seen != len(sizes) {
		t.Fatalf("%d frames, %v", seen, err)
	}
	b := make([]byte, 2)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	f.Have = 0
	if err := c.DiscardFrames(f); !errors.Is(err, io.ErrUnexpectedEOF) || f.Have != 3 {
		t.Errorf("%d bytes of a head, %v", f.Have, err)
	}
}
