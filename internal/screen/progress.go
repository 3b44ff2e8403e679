package screen

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"weir/internal/say"
)

// Escapes of styles.
const (
	Faint  = "\x1b[2m"
	Red    = "\x1b[31m"
	Cyan   = "\x1b[36m"
	Normal = "\x1b[0m"
)

// A Look is the style of rows.
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

// Unknown is a share or a time that is not known.
const Unknown = -1

// A Progress is the content of a progress bar's row.
type Progress struct {
	Where  string        // the activity
	Detail string        // more about it, if there is room
	Pad    int           // columns of Where and Detail, if there is room, so that the bar does not jump
	Share  float64       // done, 0 to 1, or Unknown
	Left   time.Duration // or Unknown
	Most   bool          // Left is an upper bound
	Now    time.Time
}

// Columns of the bar.
const (
	minBar = 8
	maxBar = 40
)

// Left returns a text with the remaining time, or with its upper bound if most is set.
func Left(left time.Duration, most bool) string {
	if most {
		return "at most " + Clock(left) + " left"
	}
	return Clock(left) + " left"
}

// Row returns one line of at most the given columns. If there are too few columns, it leaves out
// the detail, the time of the end, the bar and the time left, in this order.
func (p Progress) Row(columns int, l Look) string {
	share, left, end := "", "", ""
	if p.Share >= 0 {
		share = fmt.Sprintf(" %3.0f%%", 100*min(p.Share, 1))
	}
	if p.Left >= 0 {
		left = "  " + Left(p.Left, p.Most)
		end = ", ends " + p.Now.Add(p.Left).Format(layout(p.Left))
		if p.Most {
			end = strings.Replace(end, "ends", "until", 1)
		}
	}
	where, detail := " "+p.Where, p.Detail
	bar := minBar + 4
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
		if pad := p.Pad + 1 - cells(text); pad > 0 && room-pad >= minBar {
			text, room = text+strings.Repeat(" ", pad), room-pad
		}
		text += "  " + drawBar(p.Share, min(room, maxBar), l)
	}
	return cut(text+share+left+end, columns)
}

// layout returns the precision of the time at which something ends.
func layout(left time.Duration) string {
	switch {
	case left < 20*time.Minute:
		return time.TimeOnly
	case left < 20*time.Hour:
		return "15:04"
	}
	return "Mon 2 Jan 15:04"
}

// Clock writes a duration as 0:07, 12:40 or 1:02:03, in days from two of them on.
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

// Spark draws the last values, at most as many as there are columns, each as a block
// in eighths of the highest of them.
func Spark(values []float64, columns int) string {
	values = values[max(len(values)-max(columns, 0), 0):]
	highest := 0.0
	for _, v := range values {
		if v > highest { // never with NaN
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

// cells returns the number of columns of a text: each rune takes one column, an escape takes no
// column.
func cells(text string) int {
	n := 0
	for len(text) > 0 {
		if e := escape(text); e > 0 {
			text = text[e:]
			continue
		}
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		n++
	}
	return n
}

// cut returns as much of the beginning of text as fits into the columns.
func cut(text string, columns int) string {
	styled := false
	for i, n := 0, 0; i < len(text); {
		if e := escape(text[i:]); e > 0 {
			i += e
			styled = true
			continue
		}
		if n >= columns {
			if text = text[:i]; styled {
				text += Normal
			}
			return text
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		i, n = i+size, n+1
	}
	return text
}

// escape returns the length of the escape at the beginning of text, 0 if text does not begin with
// an escape.
func escape(text string) int {
	if !strings.HasPrefix(text, "\x1b[") {
		return 0
	}
	return strings.IndexByte(text, 'm') + 1
}

// A Task is the progress of one activity.
type Task struct {
	What        string
	done, total int
	since       time.Time
}

// Advance notes the progress; total is 0 while it is not known. Another activity begins anew.
// Numbers of several goroutines may arrive out of order.
func (t *Task) Advance(what string, done, total int) {
	if t.What != what || t.total != total && total > 0 {
		*t = Task{What: what, total: total, since: time.Now()}
	}
	t.done = max(t.done, done)
}

// Progress returns the row of the task. The time left is extrapolated.
func (t *Task) Progress(now time.Time) Progress {
	p := Progress{Where: t.What, Share: Unknown, Left: Unknown, Now: now}
	if t.done > 0 || t.total > 0 {
		p.Where += fmt.Sprintf(": %d", t.done)
	}
	if t.total > 0 {
		p.Where += fmt.Sprintf(" of %d", t.total)
		p.Share = float64(t.done) / float64(t.total)
		if elapsed := now.Sub(t.since); elapsed > 2*time.Second && t.done > 0 {
			p.Left = time.Duration(float64(elapsed) * float64(t.total-t.done) / float64(t.done))
		}
	}
	return p
}

// spinnerDelay is the minimum duration of an activity that a Spinner shows.
const spinnerDelay = time.Second

// A Spinner shows an activity on a terminal until it is stopped.
type Spinner struct {
	mu    sync.Mutex
	task  Task
	begun time.Time
	look  Look
	// Stop removes the row.
	Stop func()
}

// Spin shows an activity on w, if that is a terminal.
func Spin(w io.Writer, what string) *Spinner {
	to := New(w)
	s := &Spinner{task: Task{What: say.Plain(what), since: time.Now()}, begun: time.Now(), look: to.Look()}
	s.Stop = to.Animate(s.rows)
	return s
}

// Advance shows progress, as that of a Task. It may be called by several goroutines at once.
func (s *Spinner) Advance(what string, done, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.task.Advance(say.Plain(what), done, total)
}

func (s *Spinner) rows(columns int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	elapsed := now.Sub(s.begun)
	if elapsed < spinnerDelay {
		return nil
	}
	p := s.task.Progress(now)
	if p.Share < 0 {
		p.Detail = fmt.Sprintf(", %s so far", Clock(elapsed))
	}
	return []string{p.Row(columns-3, s.look)}
}
