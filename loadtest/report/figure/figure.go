// Package figure describes plots as plain data, so that one description can be drawn in several
// ways: by figure/draw as SVG, PNG and PDF, and by the script of the pages. Values are in base
// units (bytes per second, seconds, shares); an axis defines their presentation.
package figure

import "strings"

// A Figure is a plot with its text. It is complete and independent: several goroutines may draw it
// at once.
type Figure struct {
	ID      string   `json:"id"` // letters and digits, unique on a page
	Title   string   `json:"title"`
	Desc    string   `json:"desc"`            // a definition that is not in title, axes and legend; may be empty
	Stamp   string   `json:"stamp,omitempty"` // validity of the run
	X       Axis     `json:"x"`
	Y       Axis     `json:"y"`
	Lines   []Line   `json:"lines,omitempty"`
	Columns []Column `json:"columns,omitempty"` // of a histogram
	Zones   []Zone   `json:"zones,omitempty"`   // shaded stretches of the x axis
	Marks   []Mark   `json:"marks,omitempty"`
	Heat    *Heat    `json:"heat,omitempty"`
	Matrix  *Matrix  `json:"-"` // the whole figure; the axes have only labels, and a page shows the static drawing
	Few     int      `json:"-"` // points of a line in the static drawing, at most; 0: MostPoints
}

// Alt returns the alternative text of the plot: its axes, the names of its lines, and its
// definition.
func (f *Figure) Alt() string {
	parts := []string{f.Y.Caption() + " by " + f.X.Caption()}
	if f.Heat != nil {
		parts[0] = f.Heat.What + " by " + f.Y.Caption() + " and " + f.X.Caption()
	}
	if f.Matrix != nil {
		parts[0] = f.Matrix.What + " by " + f.Y.Caption() + " and " + f.X.Caption()
	}
	var names []string
	for i := range f.Lines {
		if f.Lines[i].Name != "" {
			names = append(names, f.Lines[i].Name)
		}
	}
	if len(names) > 1 {
		parts = append(parts, "Lines: "+strings.Join(names, "; "))
	}
	if f.Desc != "" {
		parts = append(parts, f.Desc)
	}
	return strings.Join(parts, ". ")
}

// A Line is drawn through points; Dots marks each of them. Intervals are bars at
// the points of a line with dots, and a band along one without.
type Line struct {
	Name   string // "": it continues the previous line, which is in the legend
	Color  int    // of the palette, from 0 to 5
	Dash   bool
	Dots   bool
	Loose  bool // its dots are not joined
	Points []Point
}

// A Point may have an interval and a note that is shown while the user points at it.
type Point struct {
	X, Y      float64
	Low, High *float64
	Note      string // of the static drawing; charts make their own notes from the axes
}

// A Column is a bar of a histogram.
type Column struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
	Y    float64 `json:"y"`
	Note string  `json:"-"` // as a Point's
}

// A Zone is a stretch of the x axis that belongs together, with a name.
type Zone struct {
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Name   string  `json:"name"`
	Outage bool    `json:"outage,omitempty"` // drawn as a warning, above the other zones
}

// A Mark is a named vertical line, with the interval of its position if that is known.
type Mark struct {
	X    float64  `json:"x"`
	Name string   `json:"name"`
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
}

// A Heat is a field of counts: Rows[i][k] is the count between X[i] and X[i+1], and between Y[k]
// and Y[k+1].
type Heat struct {
	X    []float64 `json:"x"` // ascending edges, one more than Rows
	Y    []float64 `json:"y"` // ascending edges, one more than each row has
	Rows [][]int64 `json:"rows"`
	What string    `json:"what"` // name of the counted things: "operations"
}

// Most returns the largest count of a cell.
func (h *Heat) Most() int64 {
	most := int64(0)
	for _, row := range h.Rows {
		for _, n := range row {
			most = max(most, n)
		}
	}
	return most
}

// MostPoints is the largest number of points of one line in a drawing without a script.
const MostPoints = 600

// ThinTo keeps at most that many points of a time series: the lowest and the highest point of each
// stretch, in their order, so that no peak is lost. It returns shorter series unchanged.
func ThinTo(points []Point, most int) []Point {
	if len(points) <= most {
		return points
	}
	stretches := max(1, most/2)
	out := make([]Point, 0, 2*stretches)
	for i := range stretches {
		part := points[i*len(points)/stretches : (i+1)*len(points)/stretches]
		low, high := 0, 0
		for k := range part {
			if part[k].Y < part[low].Y {
				low = k
			}
			if part[k].Y > part[high].Y {
				high = k
			}
		}
		out = append(out, part[min(low, high)])
		if low != high {
			out = append(out, part[max(low, high)])
		}
	}
	return out
}
