package draw

import (
	"strings"

	"weir/loadtest/report/figure"
)

// Sizes of letters and lines in points: they correspond to the small print of a paper.
const (
	labelSize = 8.0
	tickSize  = 7.0
	smallSize = 6.5
	titleSize = 9.0
	margin    = 4.0
	hair      = 0.35

	sampleWidth = 20.0 // of a line in the legend: enough to see its dashes
	thick       = 1.1
)

// invalid is the stamp of an invalid run.
const invalid = "invalid"

// A sheet is one figure on its way to a canvas.
type sheet struct {
	canvas
	d      *Drawer
	f      *figure.Figure
	x, y   []tick
	inset  [2]float64 // between the frame and the data, left and right: room for markers
	left   float64
	right  float64
	top    float64
	bottom float64
	taken  []box // by texts inside of the frame
	names  []string
	styles []style
}

// A box is a rectangle on the sheet.
type box struct{ left, top, right, bottom float64 }

func newSheet(d *Drawer, c canvas, f *figure.Figure) *sheet {
	s := &sheet{canvas: c, d: d, f: f, styles: styles(f)}
	for i := range f.Lines {
		s.names = append(s.names, d.fonts.plain(f.Lines[i].Name))
		if f.Lines[i].Dots {
			s.inset[1] = 4
			s.makeRoom(&f.Lines[i])
		}
	}
	return s
}

// draw draws the parts of the figure from the lowest to the highest.
func (s *sheet) draw() {
	if s.f.Matrix != nil {
		s.matrix()
		return
	}
	s.layout()
	s.zones()
	s.markIntervals()
	for i := range s.f.Lines {
		s.band(i)
	}
	s.watermark()
	s.grid()
	s.heat()
	s.columns()
	s.markLines()
	for _, dots := range []bool{false, true} { // measured lines cover fitted lines
		for i := range s.f.Lines {
			if s.f.Lines[i].Dots == dots {
				s.line(i)
			}
		}
	}
	s.axes()
	s.markNames()
}

// layout computes the position of the frame, from the outside inwards, and draws the parts around
// it: title, legend and stamp.
func (s *sheet) layout() {
	size := s.d.Size
	s.right, s.top, s.bottom = size.Width-margin-2, margin, size.Height-margin-labelSize-tickSize-9
	if s.f.Heat != nil {
		s.right -= scaleWidth
	}
	const leastPlot = 40 // points; the parts above are reduced
	s.y = ticks(&s.f.Y, s.bottom-s.top-20, 14)
	widest := 0.0
	for _, t := range s.y {
		widest = max(widest, s.d.fonts.width(t.text, letters{size: tickSize}))
	}
	s.left = margin + labelSize + 5 + min(widest, size.Width/4) + 4
	s.x = ticks(&s.f.X, s.right-s.left, 34)
	s.keepInside()
	s.x = s.spread(s.x)
	if s.d.Title && s.f.Title != "" {
		l := letters{size: titleSize, bold: true}
		s.text(point{margin, s.top + titleSize - 1}, s.d.fonts.fit(s.d.fonts.plain(s.f.Title), l, size.Width-2*margin), l)
		s.top += titleSize + 5
	}
	s.top = min(s.legend(s.top, s.stamp(s.top)), s.bottom-leastPlot)
	for _, z := range s.f.Zones {
		if z.Name != "" {
			s.top += smallSize + 2
			break
		}
	}
	s.top += 4 // half the height of the number at a tick
}

// keepInside moves the right end of the axis until its last number is on the sheet.
func (s *sheet) keepInside() {
	for _, t := range s.x {
		half := s.d.fonts.width(t.text, letters{size: tickSize}) / 2
		if over := s.px(t.at) + half - (s.d.Size.Width - 2); over > 0 && s.f.Heat == nil {
			s.right -= min(over, half)
		}
	}
}

// doubtful reports whether the run has a stamp other than valid and unchecked.
func (s *sheet) doubtful() bool {
	return s.f.Stamp != "" && s.f.Stamp != "valid" && s.f.Stamp != "unchecked"
}

// stamp writes the validity of the run: below the axis in small letters if the run is not doubtful,
// otherwise conspicuously above the frame. It returns the right end of the remaining first row of
// the legend.
func (s *sheet) stamp(top float64) (right float64) {
	text := s.d.fonts.plain(s.f.Stamp)
	if text == "" {
		return s.right
	}
	if !s.doubtful() {
		l := letters{size: smallSize - 1, color: gray()}
		s.text(point{s.d.Size.Width - margin - s.d.fonts.width(text, l), s.d.Size.Height - margin}, text, l)
		return s.right
	}
	l := letters{size: tickSize, bold: true, color: white()}
	text = s.d.fonts.fit(strings.ToUpper(text), l, 0.6*s.d.Size.Width)
	w := s.d.fonts.width(text, l)
	edge := s.d.Size.Width - margin
	s.fill(rectangle(box{edge - w - 6, top, edge, top + tickSize + 3}), alarm(s.f.Stamp), "")
	s.text(point{edge - w - 3, top + tickSize}, text, l)
	return edge - w - 12
}

// watermark draws the stamp below the data of an invalid run, so that it remains if the frame is
// cut off.
func (s *sheet) watermark() {
	if s.f.Stamp != invalid {
		return
	}
	l := letters{size: 10, bold: true, color: tint{235, 200, 198, "watermark"}}
	text := strings.ToUpper(s.f.Stamp)
	l.size = min(10*0.8*(s.right-s.left)/s.d.fonts.width(text, l), 0.5*(s.bottom-s.top))
	w := s.d.fonts.width(text, l)
	s.text(point{(s.left + s.right - w) / 2, (s.top+s.bottom)/2 + l.size*0.35}, text, l)
}

// legend writes the names of the lines above the frame, from top on, and returns its end. If there
// is one line, its name is at the axis; a page has the names beside the drawing.
func (s *sheet) legend(top, right float64) float64 {
	const sample, gap, row = sampleWidth + 3, 9.0, 9.5
	if len(s.f.Lines) < 2 || s.d.page {
		if right < s.right { // the stamp has a row
			return top + row + 1
		}
		return top
	}
	l := letters{size: tickSize}
	x, y := s.left, top+tickSize
	for i, name := range s.names {
		if name == "" && i > 0 {
			continue
		}
		name = s.d.fonts.fit(name, l, 0.6*(s.right-s.left))
		need := sample + s.d.fonts.width(name, l)
		if x+need > right && (x > s.left || right < s.right) {
			x, y, right = s.left, y+row, s.right
		}
		s.sample(x, y-2.4, i)
		s.text(point{x + sample, y}, name, l)
		x += need + gap
	}
	return y + 3
}

// makeRoom moves the axis away from the frame if a marker would lie on it.
func (s *sheet) makeRoom(l *figure.Line) {
	for _, p := range l.Points {
		if s.f.X.At(p.X) < 0.02 {
			s.inset[0] = 4
		}
	}
}

func rectangle(b box) []point {
	return []point{{b.left, b.top}, {b.right, b.top}, {b.right, b.bottom}, {b.left, b.bottom}}
}

func (s *sheet) px(x float64) float64 {
	return s.left + s.inset[0] + (s.right-s.left-s.inset[0]-s.inset[1])*s.f.X.At(x)
}

func (s *sheet) py(y float64) float64 { return s.bottom - (s.bottom-s.top)*s.f.Y.At(y) }
