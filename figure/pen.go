package figure

import (
	"math"
	"strconv"
)

// A pen writes a path through points with a tenth of a unit, each relative to
// the one before, which takes half of the letters that places would.
type pen struct {
	d    []byte
	x, y int  // tenths
	line bool // the letter of lines is there: a path must not end in it
}

func (p *pen) to(x, y float64) {
	tenthX, tenthY := int(math.Round(10*x)), int(math.Round(10*y))
	switch {
	case len(p.d) == 0:
		p.d = append(p.d, 'M')
		p.number(tenthX)
		p.number(tenthY)
	default:
		if !p.line {
			p.d, p.line = append(p.d, 'l'), true
		}
		p.number(tenthX - p.x)
		p.number(tenthY - p.y)
	}
	p.x, p.y = tenthX, tenthY
}

// number writes n tenths, with a space before it where it would run into what
// stands there.
func (p *pen) number(n int) {
	if last := p.d[len(p.d)-1]; n >= 0 && last != 'M' && last != 'l' {
		p.d = append(p.d, ' ')
	}
	if n < 0 {
		p.d = append(p.d, '-')
		n = -n
	}
	if n >= 10 || n == 0 {
		p.d = strconv.AppendInt(p.d, int64(n/10), 10)
	}
	if n%10 != 0 {
		p.d = append(p.d, '.', byte('0'+n%10))
	}
}
