package calibration

import (
	"testing"
	"time"
)

func TestPauses(t *testing.T) {
	c := &calibrator{}
	for i := range c.sides {
		c.sides[i] = &side{rates: map[int]float64{}}
	}
	if _, ok := c.slowDown(2, 8); ok {
		t.Error("slowed down to nobody's rate")
	}
	c.sides[0].rates[8], c.sides[1].rates[8] = 1000, 100
	if pause, ok := c.slowDown(2, 8); !ok || pause != 72*time.Millisecond { // 80 ms a turn, 8 of them the file's
		t.Errorf("%v %v", pause, ok)
	}
	c.sides[1].rates[8] = 2000
	if _, ok := c.slowDown(2, 8); ok {
		t.Error("slowed down to a faster one")
	}
	if _, ok := c.slowDown(0, 8); !ok {
		t.Error("a side without a pause")
	}
}
