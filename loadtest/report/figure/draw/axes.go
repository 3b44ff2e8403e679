package draw

import (
	"math"
	"slices"
	"unicode/utf8"

	"weir/loadtest/report/figure"
)

// A tick is a position on an axis; a tick without a text is small.
type tick struct {
	at   float64
	text string
}

// ticks returns the ticks of the axis if they are round or evenly spaced; otherwise, as under the
// points of a table, it returns round numbers that are at least apart points from each other on
// length points. A logarithmic axis has small ticks between them.
func ticks(a *figure.Axis, length, apart float64) []tick {
	at := a.Ticks
	if a.Base <= 1 && !even(at) {
		at = round(a, max(2, int(length/apart)))
	}
	var all []tick
	for _, x := range at {
		all = append(all, tick{x, a.Text(x)})
	}
	if a.Base == 10 {
		all = append(all, small(a, at)...)
	}
	return all
}

func even(at []float64) bool {
	for i := 2; i < len(at); i++ {
		if math.Abs((at[i]-at[i-1])-(at[1]-at[0])) > 0.01*math.Abs(at[1]-at[0]) {
			return false
		}
	}
	return len(at) > 2
}

// round returns at most n multiples of a number that is round in the unit of the axis.
func round(a *figure.Axis, n int) []float64 {
	low, high := a.Min*a.Factor, a.Max*a.Factor
	if !(high > low) || math.IsInf(high-low, 0) {
		return nil
	}
	step := figure.Nice((high - low) / float64(n))
	var at []float64
	for i := math.Ceil(low/step - 1e-9); i*step <= high*(1+1e-9) && len(at) <= n; i++ {
		at = append(at, i*step/a.Factor+0) // no minus zero
	}
	return at
}

// small returns the ticks without numbers at 2 to 9 times each power of ten.
func small(a *figure.Axis, at []float64) []tick {
	const most = 40 // decades; more cannot be distinguished
	first, last := math.Floor(math.Log10(a.Min*a.Factor)), math.Log10(a.Max*a.Factor)
	if !(last-first < most) || math.IsInf(first, 0) {
		return nil
	}
	var all []tick
	for e := first; e <= last; e++ {
		for f := 2.0; f < 10; f++ {
			x := f * math.Pow(10, e) / a.Factor
			named := slices.ContainsFunc(at, func(t float64) bool { return math.Abs(t-x) < 1e-6*x })
			if x > a.Min && x < a.Max && !named {
				all = append(all, tick{at: x})
			}
		}
	}
	return all
}

// spread removes texts of the x axis that would touch others: if the ticks are evenly spaced, it
// keeps every second or third text; otherwise it removes each text that would touch the next
// remaining text.
func (s *sheet) spread(all []tick) []tick {
	const gap = 5
	l := letters{size: tickSize}
	free := s.right + 100
	out := slices.Clone(all)
	if s.f.X.Base <= 1 {
		most := 0.0
		for _, t := range all {
			most = max(most, s.d.fonts.width(t.text, l))
		}
		every := max(1, int(math.Ceil((most+gap)*float64(len(all)-1)/(s.right-s.left))))
		for i := range out {
			if i%every != 0 {
				out[i].text = ""
			}
		}
		return out
	}
	for i := len(out) - 1; i >= 0; i-- {
		if out[i].text == "" {
			continue
		}
		x, half := s.px(out[i].at), s.d.fonts.width(out[i].text, l)/2
		if x+half+gap > free {
			out[i].text = ""
			continue
		}
		free = x - half
	}
	return out
}

func (s *sheet) zones() {
	free := s.left - 100.0
	l := letters{size: smallSize, color: gray()}
	for _, z := range s.f.Zones {
		from, to := s.px(z.From), s.px(z.To)
		shade := tint{233, 236, 240, "zone"}
		if z.Outage {
			shade = tint{236, 178, 170, "outage"}
		}
		s.fill(rectangle(box{from, s.top, max(to, from+0.3), s.bottom}), shade, "")
		name := s.d.fonts.plain(z.Name)
		w := s.d.fonts.width(name, l)
		if x := (from + to - w) / 2; name != "" && x > free && x > 0 && x+w < s.d.Size.Width {
			s.text(point{x, s.top - 2}, name, l)
			free = x + w + 3
		}
	}
}

func (s *sheet) grid() {
	if s.f.Heat != nil {
		return
	}
	for _, t := range s.y {
		if t.text != "" {
			y := s.py(t.at)
			s.stroke([]point{{s.left, y}, {s.right, y}}, pen{color: tint{215, 218, 222, "grid"}, width: hair})
		}
	}
}

func (s *sheet) axes() {
	black := pen{width: 0.6}
	l := letters{size: tickSize}
	free := s.d.Size.Height + 100.0
	for _, t := range s.y {
		y, long := s.py(t.at), 3.0
		if t.text == "" {
			long = 1.8
		}
		s.stroke([]point{{s.left, y}, {s.left - long, y}}, black)
		if t.text != "" && y+tickSize*0.5 < free {
			text := s.d.fonts.plain(t.text)
			s.text(point{s.left - 4.5 - s.d.fonts.width(text, l), y + tickSize*0.36}, text, l)
			free = y - tickSize*0.5
		}
	}
	for _, t := range s.x {
		x, long := s.px(t.at), 3.0
		if t.text == "" {
			long = 1.8
		}
		s.stroke([]point{{x, s.bottom}, {x, s.bottom + long}}, black)
		text := s.d.fonts.plain(t.text)
		s.text(point{x - s.d.fonts.width(text, l)/2, s.bottom + 3 + tickSize + 0.5}, text, l)
	}
	s.stroke([]point{{s.left, s.top}, {s.left, s.bottom}, {s.right, s.bottom}}, black)
	s.captions()
}

// captions writes the names of the axes; the name of the x axis leaves space for the stamp beside
// it.
func (s *sheet) captions() {
	l := letters{size: labelSize}
	most := s.right - s.left
	edge := s.d.Size.Width - margin
	if s.f.Stamp != "" && !s.doubtful() {
		edge -= float64(utf8.RuneCountInString(s.f.Stamp))*smallSize*0.6 + 4
	}
	text := s.d.fonts.fit(s.d.fonts.plain(s.f.X.Caption()), l, most)
	w := s.d.fonts.width(text, l)
	s.text(point{min((s.left+s.right-w)/2, edge-w), s.d.Size.Height - margin}, text, l)
	l.turned = true
	text = s.d.fonts.plain(s.f.Y.Caption())
	if room := s.d.Size.Height - 2*margin; s.d.fonts.width(text, l) > room {
		l.size = max(smallSize, l.size*room/s.d.fonts.width(text, l))
		text = s.d.fonts.fit(text, l, room)
	}
	w = s.d.fonts.width(text, l)
	y := (s.top+s.bottom)/2 + w/2
	s.text(point{margin + labelSize - 1, max(margin+w, min(y, s.d.Size.Height-margin))}, text, l)
}
