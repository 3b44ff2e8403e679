package figure

import "fmt"

// A Matrix is a table of shares with names at both sides, such as the achieved share of the target
// rate of each link, or of each link in each minute.
type Matrix struct {
	Rows    []string // names, from the top
	Columns []string // names, from the left; "" has no name
	Cells   [][]Cell // by row and column
	What    string   // the share: "achieved share of the target"
	Sums    bool     // the last row and the last column are sums of the others
}

// A Cell is a field of a matrix. The zero value is empty: there is no such link.
type Cell struct {
	There bool
	Share float64 // 0 to 1, or above it; NaN: unknown
	Text  string  // in the field, if it fits
	Note  string  // shown while the user points at it
}

// PercentCell returns a cell whose text is the share in percent.
func PercentCell(share float64, note string) Cell {
	return Cell{There: true, Share: share, Text: fmt.Sprintf("%.0f", 100*share), Note: note}
}

// Levels are the lower ends of the levels of shares that are drawn alike, the best first. Shares
// below the last are the lowest level.
func Levels() []float64 { return []float64{0.95, 0.8, 0.6, 0.4, 0.2} }

// Level returns the level of a share, from 0.
func Level(share float64) int {
	for i, least := range Levels() {
		if share >= least-0.5e-2 { // as the text in percent is rounded
			return i
		}
	}
	return len(Levels())
}

// Count returns the number of cells that are there, without the sums.
func (m *Matrix) Count() int {
	n := 0
	for i, row := range m.Cells {
		for k := range row {
			sum := m.Sums && (i == len(m.Cells)-1 || k == len(row)-1)
			if row[k].There && !sum {
				n++
			}
		}
	}
	return n
}
