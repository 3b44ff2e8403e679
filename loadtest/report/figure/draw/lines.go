package draw

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"weir/loadtest/report/figure"
)

// palette returns a color with a hue of the pages; the colors also differ in lightness.
func palette(i int) tint {
	all := []tint{{0, 80, 138, "c0"}, {213, 94, 0, "c1"}, {42, 160, 120, "c2"}, {134, 44, 104, "c3"}, {214, 160, 0, "c4"},
		{104, 140, 222, "c5"}}
	return all[(i%len(all)+len(all))%len(all)]
}

// gray is the color of secondary text.
func gray() tint { return tint{95, 100, 106, "soft"} }

func white() tint { return tint{255, 255, 255, "card"} }

// alarm is the color of the stamp of an invalid or suspect run.
func alarm(stamp string) tint {
	if stamp == invalid {
		return tint{170, 30, 25, "fail"}
	}
	return tint{150, 95, 0, "warn"}
}

// A style distinguishes a line from the others without its color.
type style struct {
	color   tint
	dash    []float64
	joined  bool // its points are joined
	marker  int  // its shape; -1: no marker
	markers int  // the number of markers, evenly distributed; 0: one at each point
}

// styles returns different markers and different dashes for lines that are otherwise equal. Beside
// a fitted curve, measured points are not joined.
func styles(f *figure.Figure) []style {
	fitted, dotted := false, false
	for i := range f.Lines {
		l := &f.Lines[i]
		fitted, dotted = fitted || !l.Dots && strings.HasPrefix(l.Name, "fitted"), dotted || l.Dots
	}
	solid := [][]float64{nil, {6, 1.6}, {2.4, 1.6}, {6, 1.6, 1.4, 1.6}, {1.2, 1.4}, {9, 2.4}}
	dashed := [][]float64{{4, 2.2}, {1.3, 1.6}, {7, 2, 1.4, 2}, {2.6, 1.3}}
	var all []style
	var plain, dash int
	for i := range f.Lines {
		l := &f.Lines[i]
		if l.Name == "" && i > 0 {
			all = append(all, all[i-1])
			continue
		}
		st := style{color: palette(l.Color), joined: !l.Loose && (!l.Dots || !fitted), marker: i % shapes}
		switch {
		case l.Dash:
			st.dash = dashed[dash%len(dashed)]
			dash++
		case l.Dots:
			st.dash = solid[(plain+plain/len(solid))%len(solid)] // the seventh has the marker of the first, but not its dashes
			plain++
		}
		switch {
		case dotted && !l.Dots, !l.Dots && len(f.Lines) == 1:
			st.marker = -1
		case !l.Dots:
			st.markers = 7
		}
		all = append(all, st)
	}
	return all
}

// shapes is the number of markers.
const shapes = 6

// outline returns the outline of marker number i around at.
func outline(i int, at point, r float64) []point {
	turn, corners := 0.0, 20
	switch i {
	case 1: // square
		turn, corners, r = math.Pi/4, 4, r*1.2
	case 2: // triangle
		turn, corners, r = -math.Pi/2, 3, r*1.3
	case 3: // diamond
		turn, corners, r = 0, 4, r*1.3
	case 4: // triangle that stands on its tip
		turn, corners, r = math.Pi/2, 3, r*1.3
	case 5: // star
		turn, corners, r = -math.Pi/2, 10, r*1.5
	}
	var out []point
	for k := range corners {
		angle, long := turn+2*math.Pi*float64(k)/float64(corners), r
		if i == 5 && k%2 == 1 {
			long *= 0.42
		}
		out = append(out, point{at.x + long*math.Cos(angle), at.y + long*math.Sin(angle)})
	}
	return out
}

const markerSize = 2.0

// sample draws a short part of a line for the legend.
func (s *sheet) sample(x, y float64, i int) {
	st := &s.styles[i]
	if st.joined {
		s.stroke([]point{{x, y}, {x + sampleWidth, y}}, pen{st.color, thick, st.dash})
	}
	if st.marker >= 0 {
		s.mark(st.marker, point{x + sampleWidth/2, y}, markerSize, st.color, "")
	}
}

// points returns the points of a line that have a position.
func (s *sheet) points(l *figure.Line) []figure.Point {
	var known []figure.Point
	for _, p := range l.Points {
		if !math.IsNaN(p.X+p.Y) && !math.IsInf(p.X, 0) && !math.IsInf(p.Y, 0) {
			known = append(known, p)
		}
	}
	if !l.Dots {
		known = figure.ThinTo(known, cmp.Or(s.f.Few, figure.MostPoints))
	}
	return known
}

func (s *sheet) line(i int) {
	l, st := &s.f.Lines[i], &s.styles[i]
	points := s.points(l)
	path := make([]point, len(points))
	beside := s.beside(i)
	for k, p := range points {
		path[k] = point{s.px(p.X) + beside, s.py(p.Y)}
	}
	width := thick
	if len(path) > 200 { // a noisy line
		width = 0.6
	}
	if st.joined && len(path) > 1 {
		s.stroke(path, pen{st.color, width, st.dash})
	}
	for k, p := range points {
		if l.Dots && spread(p.Low, p.High) {
			s.interval(path[k].x, s.py(*p.Low), s.py(*p.High), st.color)
		}
	}
	if st.marker < 0 {
		return
	}
	for _, k := range places(len(path), st.markers, i) {
		s.mark(st.marker, path[k], markerSize, st.color, points[k].Note)
	}
}

// beside returns the distance by which line i is shifted, so that intervals at the same load do not
// cover each other.
func (s *sheet) beside(i int) float64 {
	const apart, most = 2.2, 9.0
	at, n := 0, 0
	for k := range s.f.Lines {
		if l := &s.f.Lines[k]; !l.Dots || !slices.ContainsFunc(l.Points, func(p figure.Point) bool { return spread(p.Low, p.High) }) {
			if k == i {
				return 0
			}
			continue
		}
		if k == i {
			at = n
		}
		n++
	}
	if n < 2 {
		return 0
	}
	return (float64(at) - float64(n-1)/2) * min(apart, most/float64(n-1))
}

// band draws the intervals along a line without dots, in stretches of points that have an interval.
func (s *sheet) band(line int) {
	l, c := &s.f.Lines[line], s.styles[line].color
	if l.Dots {
		return
	}
	points := s.points(l)
	pale := func(x uint8) uint8 { return uint8(255 - (255-int(x))/5) }
	for i := 0; i < len(points); {
		from := i
		for i < len(points) && spread(points[i].Low, points[i].High) {
			i++
		}
		if i-from > 1 {
			var edge []point
			for _, p := range points[from:i] {
				edge = append(edge, point{s.px(p.X), s.py(*p.Low)})
			}
			for _, p := range slices.Backward(points[from:i]) {
				edge = append(edge, point{s.px(p.X), s.py(*p.High)})
			}
			s.fill(edge, tint{pale(c.r), pale(c.g), pale(c.b), "band " + c.class}, "")
		}
		i++
	}
}

// interval draws the bar from low to high.
func (s *sheet) interval(x, low, high float64, c tint) {
	bar := pen{color: c, width: 0.6}
	s.stroke([]point{{x, low}, {x, high}}, bar)
	s.stroke([]point{{x - 1.8, low}, {x + 1.8, low}}, bar)
	s.stroke([]point{{x - 1.8, high}, {x + 1.8, high}}, bar)
}

// places returns all n points, or as many of them as there are markers, at different positions for
// each line.
func places(n, markers, line int) []int {
	var all []int
	if markers == 0 || n <= markers {
		for i := range n {
			all = append(all, i)
		}
		return all
	}
	for i := range markers {
		all = append(all, min(n-1, int((float64(i)+0.2+0.27*float64(line%3))*float64(n)/float64(markers))))
	}
	return all
}

// columns draws a histogram in which every column is visible, even with the smallest count.
func (s *sheet) columns() {
	for _, c := range s.f.Columns {
		if !(c.Y > 0) {
			continue
		}
		b := box{s.px(c.From), min(s.py(c.Y), s.bottom-0.8), s.px(c.To), s.bottom}
		b.right = max(b.right, b.left+0.5)
		s.fill(rectangle(b), tint{120, 160, 196, "column"}, c.Note)
		s.stroke(append(rectangle(b), point{b.left, b.top}), pen{color: palette(0), width: 0.4})
	}
}
