package inflate

import "math/bits"

const (
	longest = 15 // bits of a code
	quick   = 7  // bits that are looked up at once
)

// codes is a set of Huffman codes. Codes up to quick bits are in a table; the
// longer ones, which are rare, are found bit by bit from how many there are of
// each length: their values follow one another (section 3.2.2).
type codes struct {
	table  [1 << quick]uint16 // symbol and, in the lowest four bits, length; 0 for none
	count  [longest + 1]uint16
	sorted [288]uint16 // symbols by length, then by value
}

// set makes c the codes with these lengths, 0 for a symbol without a code. It
// returns false if there are too many of them, or too few: more than one bit
// pattern would be left that means nothing.
func (c *codes) set(lengths []uint8) bool {
	c.count = [longest + 1]uint16{}
	for _, n := range lengths {
		if n > 0 {
			c.count[n]++
		}
	}
	var next, place [longest + 2]uint16
	left, total := 1, uint16(0)
	for n := 1; n <= longest; n++ {
		if left = left<<1 - int(c.count[n]); left < 0 {
			return false
		}
		total += c.count[n]
		next[n+1] = (next[n] + c.count[n]) << 1
		place[n+1] = place[n] + c.count[n]
	}
	if left > 0 && (total != 1 || c.count[1] != 1) { // one distance alone has one bit
		return false
	}
	c.table = [1 << quick]uint16{}
	for symbol, n := range lengths {
		if n == 0 {
			continue
		}
		c.sorted[place[n]] = uint16(symbol)
		place[n]++
		code := next[n]
		next[n]++
		if n <= quick {
			for i := int(bits.Reverse16(code) >> (16 - n)); i < 1<<quick; i += 1 << n {
				c.table[i] = uint16(symbol)<<4 | uint16(n)
			}
		}
	}
	return true
}

// symbol takes the next symbol. The bits of a code have been filled in.
func (f *Inflater) symbol(c *codes) uint {
	if e := c.table[f.acc&(1<<quick-1)]; e != 0 && uint(e&15) <= f.n {
		f.acc >>= e & 15
		f.n -= uint(e & 15)
		return uint(e >> 4)
	}
	code, first, index := 0, 0, 0
	for n := uint(1); n <= longest && n <= f.n; n++ {
		code |= int(f.acc>>(n-1)) & 1
		count := int(c.count[n])
		if code-first < count {
			f.acc >>= n
			f.n -= n
			return uint(c.sorted[index+code-first])
		}
		index += count
		first = (first + count) << 1
		code <<= 1
	}
	f.bad = true
	return 0
}

// fix makes the codes that need not be sent: section 3.2.6.
func (f *Inflater) fix() {
	if f.ready {
		return
	}
	var lengths [288]uint8
	for i := range lengths {
		switch {
		case i < 144:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		default:
			lengths[i] = 8
		}
	}
	f.ready = f.fixed.set(lengths[:])
}

// trees reads the codes of a block: section 3.2.7.
func (f *Inflater) trees() bool {
	literals, distances, n := f.bits(5)+257, f.bits(5)+1, f.bits(4)+4
	if f.bad = f.bad || literals > 286 || distances > 30; f.bad {
		return false
	}
	order := [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
	var short [19]uint8
	for _, symbol := range order[:n] {
		short[symbol] = uint8(f.bits(3))
	}
	var all [286 + 30]uint8
	if f.bad = f.bad || !f.lengths.set(short[:]); f.bad {
		return false
	}
	f.runs(all[:literals+distances])
	f.bad = f.bad || all[256] == 0 || !f.literals.set(all[:literals]) || !f.distances.set(all[literals:literals+distances])
	return !f.bad
}

// runs reads lengths of codes, with repetitions, into all.
func (f *Inflater) runs(all []uint8) {
	for i := 0; i < len(all) && !f.bad; {
		f.fill()
		symbol := f.symbol(&f.lengths)
		if symbol < 16 {
			all[i] = uint8(symbol)
			i++
			continue
		}
		value, times := uint8(0), 0
		switch symbol {
		case 16:
			if i == 0 {
				f.bad = true
				return
			}
			value, times = all[i-1], 3+int(f.bits(2))
		case 17:
			times = 3 + int(f.bits(3))
		default:
			times = 11 + int(f.bits(7))
		}
		if i+times > len(all) {
			f.bad = true
			return
		}
		for range times {
			all[i] = value
			i++
		}
	}
}
