package figure

import (
	"encoding/json"
	"math"
	"strconv"
)

// MarshalJSON writes the points as columns of seven digits, which is more than
// any plot shows and a third of what objects would take. What is not known is null.
func (l Line) MarshalJSON() ([]byte, error) {
	out := struct {
		Name  string  `json:"name"`
		Color int     `json:"color"`
		Dash  bool    `json:"dash,omitempty"`
		Dots  bool    `json:"dots,omitempty"`
		Loose bool    `json:"loose,omitempty"`
		X     Numbers `json:"x"`
		Y     Numbers `json:"y"`
		Low   Numbers `json:"low,omitempty"`
		High  Numbers `json:"high,omitempty"`
	}{Name: l.Name, Color: l.Color, Dash: l.Dash, Dots: l.Dots, Loose: l.Loose, X: Numbers{}, Y: Numbers{}}
	spread := false
	for i := range l.Points {
		p := &l.Points[i]
		out.X, out.Y = append(out.X, p.X), append(out.Y, p.Y)
		spread = spread || p.Low != nil && p.High != nil
	}
	for i := range l.Points {
		if p := &l.Points[i]; spread {
			out.Low, out.High = append(out.Low, known(p.Low)), append(out.High, known(p.High))
		}
	}
	return json.Marshal(out)
}

func known(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}

// Numbers are written with seven digits.
type Numbers []float64

// MarshalJSON writes null for what JSON has no number for.
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
