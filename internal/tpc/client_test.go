package tpc

import (
	"fmt"
	"testing"
)

// Whoever may ask for copies may name as many certificates as he likes.
func TestPinsAreForgotten(t *testing.T) {
	c := New(Options{})
	defer c.Close()
	for i := range 3 * mostWays {
		c.way(way{pin: fmt.Sprintf("%064x", i)})
		if n := len(c.ways); n > mostWays {
			t.Fatalf("%d ways are kept", n)
		}
	}
	kept := way{pin: fmt.Sprintf("%064x", 3*mostWays-1)}
	if c.way(kept) != c.ways[kept] {
		t.Error("the last one is not used again")
	}
}
