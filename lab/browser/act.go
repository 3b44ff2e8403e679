package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Keys for Page.Keys, among letters and digits.
const (
	Escape = kb.Escape
	Left   = kb.ArrowLeft
	Right  = kb.ArrowRight
	Home   = kb.Home
	End    = kb.End
)

// Eval evaluates a JavaScript expression in the page, waits for it if it is a promise, and decodes
// the result into out, as encoding/json would; if out is nil, the result is dropped.
func (p *Page) Eval(js string, out any) {
	p.t.Helper()
	p.call("evaluate "+js, evaluate(js, out))
}

func evaluate(js string, out any) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		b, err := chromedp.Run(ctx, chromedp.Evaluate[[]byte](js, chromedp.EvalAwaitPromise, chromedp.EvalAsValue))
		if err != nil || out == nil {
			return err
		}
		if len(b) == 0 {
			return fmt.Errorf("the expression has no value")
		}
		return json.Unmarshal(b, out)
	}
}

// Wait returns once a JavaScript expression is true, also on a page that takes the place of this one meanwhile.
func (p *Page) Wait(js string) {
	p.t.Helper()
	if !p.waitFor(js, patience) {
		var shown string
		p.Eval(`[location.href, ...[...document.querySelectorAll("dialog")].map((d) => "dialog: " + d.innerText),
			document.body.innerText].join("\n").slice(0, 4000)`, &shown)
		p.t.Fatalf("browser: %s did not become true; the page complained: %q, and shows:\n%s", js, p.Errors(), shown)
	}
}

// waitFor reports whether js became true within the given time.
func (p *Page) waitFor(js string, long time.Duration) bool {
	p.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(long); ; {
		var is bool
		p.call("evaluate "+js, func(ctx context.Context) error {
			err := evaluate("!!("+js+")", &is)(ctx)
			if err != nil && strings.Contains(err.Error(), "navigated") {
				return nil
			}
			return err
		})
		if is || time.Now().After(end) {
			return is
		}
		<-tick.C
	}
}

// A Box is the place of an element in the window, in CSS pixels.
type Box struct{ X, Y, Width, Height float64 }

// Box scrolls the first element that the CSS selector finds to the middle of the window and returns where it is then.
func (p *Page) Box(selector string) Box {
	p.t.Helper()
	b := p.find(selector)
	if b == nil {
		p.t.Fatalf("browser: nothing is %s", selector)
	}
	return *b
}

// find works like Box, but returns nil if there is no such element.
func (p *Page) find(selector string) (b *Box) {
	p.t.Helper()
	p.Eval(`(() => { const e = document.querySelector(`+strconv.Quote(selector)+`); if (!e) return null;
		e.scrollIntoView({block: "center", behavior: "instant"}); const r = e.getBoundingClientRect();
		return {X: r.x, Y: r.y, Width: r.width, Height: r.height}; })()`, &b)
	return b
}

// Move moves the mouse to a place in the window, in CSS pixels.
func (p *Page) Move(x, y float64) {
	p.t.Helper()
	p.do("move the mouse", chromedp.MouseEvent(chromedp.MouseMoved, x, y))
}

// Drag moves the mouse from one place to another with its button held down.
func (p *Page) Drag(x, y, toX, toY float64) {
	p.t.Helper()
	steps := []chromedp.Action[chromedp.Void]{chromedp.MouseEvent(chromedp.MouseMoved, x, y),
		chromedp.MouseEvent(chromedp.MousePressed, x, y, chromedp.ButtonLeft, chromedp.ClickCount(1))}
	for i := 1.0; i <= 8; i++ {
		steps = append(steps, chromedp.MouseEvent(chromedp.MouseMoved, x+(toX-x)*i/8, y+(toY-y)*i/8, chromedp.ButtonLeft))
	}
	p.do("drag the mouse", append(steps, chromedp.MouseEvent(chromedp.MouseReleased, toX, toY, chromedp.ButtonLeft,
		chromedp.ClickCount(1)))...)
}

// Click clicks at a place, n times within a moment.
func (p *Page) Click(x, y float64, n int) {
	p.t.Helper()
	p.do("move the mouse", chromedp.MouseEvent(chromedp.MouseMoved, x, y))
	for i := 1; i <= n; i++ {
		p.do("click", chromedp.MouseClickXY(x, y, chromedp.ClickCount(i)))
	}
}

// Press clicks the middle of the first element that the CSS selector finds.
func (p *Page) Press(selector string) {
	p.t.Helper()
	b := p.Box(selector)
	p.press(&b)
}

func (p *Page) press(b *Box) { p.Click(b.X+b.Width/2, b.Y+b.Height/2, 1) }

// PressFor presses an element, as Press does, until a JavaScript expression is true: a page that is
// redrawn in that moment misses a press, as it would miss a person's.
func (p *Page) PressFor(selector, js string) {
	p.t.Helper()
	for range 5 {
		if b := p.find(selector); b != nil {
			p.press(b)
		}
		if p.waitFor(js, patience/10) {
			return
		}
	}
	p.Wait(js)
}

// Swipe draws fingers over the page: each from its first place to its second. Two fingers that part are a pinch.
func (p *Page) Swipe(fingers ...[2][2]float64) {
	p.t.Helper()
	const steps = 10
	send := func(kind input.DispatchTouchEventType, share float64) {
		touch := input.DispatchTouchEventParams{Type: kind, TouchPoints: []*input.TouchPoint{}}
		for i, f := range fingers {
			if kind == input.DispatchTouchEventTypeTouchEnd {
				break
			}
			id := float64(i)
			touch.TouchPoints = append(touch.TouchPoints, &input.TouchPoint{ID: &id, X: f[0][0] + (f[1][0]-f[0][0])*share, Y: f[0][1] +
				(f[1][1]-f[0][1])*share})
		}
		p.call("touch the page", func(ctx context.Context) error {
			_, err := chromedp.Call(ctx, input.DispatchTouchEvent, touch)
			return err
		})
	}
	send(input.DispatchTouchEventTypeTouchStart, 0)
	for i := 1; i <= steps; i++ {
		send(input.DispatchTouchEventTypeTouchMove, float64(i)/steps)
	}
	send(input.DispatchTouchEventTypeTouchEnd, 1)
}

// Keys presses keys one after the other: letters, and the constants above.
func (p *Page) Keys(keys string) {
	p.t.Helper()
	p.do("press keys", chromedp.KeyEvent(keys))
}

// Screenshot writes a picture of the whole page, PNG, into a file.
func (p *Page) Screenshot(path string) {
	p.t.Helper()
	p.call("take a picture", func(ctx context.Context) error {
		b, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		if err != nil {
			return err
		}
		return os.WriteFile(path, b, 0o644)
	})
}

// PDF returns the page as it is printed.
func (p *Page) PDF() []byte {
	p.t.Helper()
	var b []byte
	p.call("print", func(ctx context.Context) (err error) {
		b, err = chromedp.Run(ctx, chromedp.PrintToPDF())
		return err
	})
	return b
}
