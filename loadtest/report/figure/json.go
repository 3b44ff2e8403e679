package figure

import (
	"encoding/json"
	"math"
	"strconv"
)

// Columns are a line in the form that the script of the pages reads: its points as columns of seven
// digits, which is more than any plot shows and a third of the size of objects. Unknown values are
// null.
type Columns struct {
	Name  string  `json:"name"`
	Color int     `json:"color"`
	Dash  bool    `json:"dash,omitempty"`
	Dots  bool    `json:"dots,omitempty"`
	Loose bool    `json:"loose,omitempty"`
	X     any     `json:"x"` // Numbers, or their index in a page
	Y     Numbers `json:"y"`
	Low   Numbers `json:"low,omitempty"`
	High  Numbers `json:"high,omitempty"`
}

// Columns returns l as columns, and its column of x separately.
func (l *Line) Columns() (Columns, Numbers) {
	x, y, low, high := Numbers{}, Numbers{}, Numbers{}, Numbers{}
	spread := false
	for i := range l.Points {
		p := &l.Points[i]
		x, y = append(x, p.X), append(y, p.Y)
		low, high = append(low, known(p.Low)), append(high, known(p.High))
		spread = spread || p.Low != nil && p.High != nil
	}
	if !spread {
		low, high = nil, nil
	}
	return Columns{l.Name, l.Color, l.Dash, l.Dots, l.Loose, x, y, low, high}, x
}

// MarshalJSON writes l as Columns.
func (l Line) MarshalJSON() ([]byte, error) {
	c, _ := l.Columns()
	return json.Marshal(c)
}

func known(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}

// Numbers are written with seven digits.
type Numbers []float64

// MarshalJSON writes null for values that JSON cannot represent.
func (n Numbers) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	for i, x := range n {
		if i > 0 {
			out = append(out, ',')
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			out = append(out, "null"...)
			continue
		}
		out = strconv.AppendFloat(out, x, 'g', 7, 64)
	}
	return append(out, ']'), nil
}
