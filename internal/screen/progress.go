package screen

import (
	"fmt"
	"strings"
	"time"
)

// A Look says how rows are drawn.
type Look struct {
	Color  bool // escapes of styles
	Blocks bool // block characters of Unicode
}

// Paint gives text a style.
func (l Look) Paint(style, text string) string {
	if !l.Color || text == "" {
		return text
	}
	return style + text + Normal
}

// Unknown stands for a share and a time that nobody knows.
const Unknown = -1

// A Progress is how far something is.
type Progress struct {
	Where  string        // what is being done
	Detail string        // more of it, where there is room
	Pad    int           // columns for both, where there is room, so that the bar does not jump
	Share  float64       // done, 0 to 1, or Unknown
	Left   time.Duration // or Unknown
	Most   bool          // Left is the most that it can be
	Now    time.Time
}

// The bar has so many columns.
const (
	leastBar = 8
	mostBar  = 40
)

// Row is one line of at most so many columns. What matters least is left out
// first: the detail, the clock at the end, the bar, the time left.
func (p Progress) Row(columns int, l Look) string {
	share, left, end := "", "", ""
	if p.Share >= 0 {
		share = fmt.Sprintf(" %3.0f%%", 100*min(p.Share, 1))
	}
	if p.Left >= 0 {
		left = "  " + Clock(p.Left) + " left"
		end = ", ends " + p.Now.Add(p.Left).Format(layout(p.Left))
		if p.Most {
			left = "  at most" + left[1:]
			end = strings.Replace(end, "ends", "until", 1)
		}
	}
	where, detail := " "+p.Where, p.Detail
	bar := leastBar + 4
	if share == "" {
		bar = 0
	}
	for _, drop := range []*string{&detail, &end, nil, &left} {
		if cells(where+detail+share+left+end)+bar <= columns {
			break
		}
		if drop == nil {
			bar = 0
		} else {
			*drop = ""
		}
	}
	text := where + detail
	if bar > 0 {
		room := columns - cells(text+share+left+end) - 4
		if pad := p.Pad + 1 - cells(text); pad > 0 && room-pad >= leastBar {
			text, room = text+strings.Repeat(" ", pad), room-pad
		}
		text += "  " + drawBar(p.Share, min(room, mostBar), l)
	}
	return cut(text+share+left+end, columns)
}

// layout is how the clock at the end is written: nobody needs the seconds of
// what takes an hour, but everybody the day of what takes days.
func layout(left time.Duration) string {
	switch {
	case left < 20*time.Minute:
		return "15:04:05"
	case left < 20*time.Hour:
		return "15:04"
	}
	return "Mon 2 Jan 15:04"
}

// Clock writes a time as 0:07, 12:40 or 1:02:03, in days from two of them on.
func Clock(d time.Duration) string {
	s := int64(max(d, 0).Round(time.Second) / time.Second)
	switch {
	case s < 3600:
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	case s < 48*3600:
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d days %d:%02d", s/86400, s/3600%24, s/60%60)
}

// drawBar is a bar of so many columns, of which share is full; two more are its ends.
func drawBar(share float64, columns int, l Look) string {
	share = max(min(share, 1), 0)
	if !l.Blocks {
		full := int(share * float64(columns))
		return "[" + l.Paint(Cyan, strings.Repeat("#", full)) + strings.Repeat(".", columns-full) + "]"
	}
	eighths := int(share * float64(columns) * 8)
	text := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[part-1])
	}
	return "▕" + l.Paint(Cyan, text) + strings.Repeat(" ", columns-cells(text)) + "▏"
}

// Spark draws the last values of at most so many columns, each one column high
// in eighths of the highest of them.
func Spark(values []float64, columns int) string {
	values = values[max(len(values)-max(columns, 0), 0):]
	highest := 0.0
	for _, v := range values {
		if v > highest {
			highest = v
		}
	}
	var b strings.Builder
	for _, v := range values {
		level := 0
		if highest > 0 && v > 0 {
			level = min(int(v/highest*8), 7)
		}
		b.WriteRune([]rune("▁▂▃▄▅▆▇█")[level])
	}
	return b.String()
}
