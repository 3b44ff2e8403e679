// Package browser opens pages in a headless Chromium, as a person would: for tests of the pages that weir makes. It
// looks up nothing beyond the loopback interface, and the browser is gone when the test ends.
//
// All its methods fail the test where something goes wrong, and wait at most two minutes; they are for the goroutine
// of the test.
package browser

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"weir/lab/labtest"
)

// patience limits every wait. Only a deadlock reaches it: machines that run tests are busy.
const patience = 2 * time.Minute

// phone is the width, in CSS pixels, below which a page is shown as on a phone: with fingers instead of a mouse, and
// two device pixels to each.
const phone = 600

// A Page is one tab of a browser of its own.
type Page struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex
	errors []string
}

// An Option changes how a page is displayed; see Dark, Still and Printed.
type Option func(ctx context.Context) error

// Dark shows the page as to a user who prefers dark pages.
func Dark() Option { return media("", "dark") }

// Printed shows the page as on paper.
func Printed() Option { return media("print", "light") }

// Still runs no script of the page. Eval and Wait work all the same.
func Still() Option {
	return func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}
}

func media(kind, scheme string) Option {
	return func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: kind,
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}
}

// Open shows the page at url (file:///... or http://127.0.0.1:...) in a window of that many CSS pixels, as on a phone
// if it is narrow, and returns when it was loaded. It needs the program chromium (see labtest.Need); the browser ends
// with the test.
func Open(t testing.TB, url string, width, height int, options ...Option) *Page {
	t.Helper()
	labtest.Need(t, "chromium")
	set := append([]chromedp.ExecAllocatorOption(nil), chromedp.DefaultExecAllocatorOptions[:]...)
	set = append(set, chromedp.DisableGPU, chromedp.ExecPath("chromium"),
		chromedp.Flag("no-proxy-server", true), // the machine's proxy settings must not matter
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"))
	allocator, end := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), set...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() { // closes the browser, waits until it has ended, and removes its files
		cancel()
		end()
	})
	p := &Page{t: t, ctx: ctx}
	p.check("start chromium", chromedp.Do(ctx)) // the browser lives as long as this very context
	p.check("listen to the page", chromedp.Listen(ctx, p.hear))
	window := []chromedp.EmulateViewportOption{chromedp.EmulateScale(1)}
	if width < phone {
		window = []chromedp.EmulateViewportOption{chromedp.EmulateScale(2), chromedp.EmulateMobile, chromedp.EmulateTouch,
			chromedp.EmulatePortrait}
	}
	p.do("set the window", chromedp.EmulateViewport(int64(width), int64(height), window...))
	p.set(options...)
	p.do("open "+url, chromedp.Navigate(url))
	return p
}

// Show changes how the page is shown from now on.
func (p *Page) Show(options ...Option) {
	p.t.Helper()
	p.set(options...)
}

// Resize gives the window other measures, in CSS pixels. Touch and scale stay.
func (p *Page) Resize(width, height int) {
	p.t.Helper()
	p.call("resize the window", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride,
			emulation.SetDeviceMetricsOverrideParams{Width: int64(width), Height: int64(height), DeviceScaleFactor: 1})
		return err
	})
}

// Reload loads the page again and returns when it was loaded.
func (p *Page) Reload() {
	p.t.Helper()
	p.do("reload", chromedp.Reload())
}

// Errors returns the errors of the page since it was opened, in order of time: uncaught exceptions,
// refused promises, console.error and errors that the browser itself logs, such as a breach of the
// content security policy. It is empty for a sound page.
func (p *Page) Errors() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.errors...)
}

// hear runs on the goroutine that reads from the browser.
func (p *Page) hear(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + value(x)
		}
	case *runtime.EventConsoleAPICalled:
		if kind := string(e.Type); kind != "error" && kind != "assert" {
			return
		}
		var said []string
		for _, x := range e.Args {
			said = append(said, value(x))
		}
		text = "console: " + strings.Join(said, " ")
	case *log.EventEntryAdded:
		if e.Entry.Level != log.EntryLevelError {
			return
		}
		text = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors = append(p.errors, text)
}

func value(x *runtime.RemoteObject) string {
	if x.Description != "" {
		return x.Description
	}
	return string(x.Value)
}

func (p *Page) set(options ...Option) {
	p.t.Helper()
	for _, o := range options {
		p.call("set how the page is shown", o)
	}
}

// call runs f with the time that it may take.
func (p *Page) call(what string, f func(ctx context.Context) error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	p.check(what, f(ctx))
}

func (p *Page) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	p.call(what, func(ctx context.Context) error { return chromedp.Do(ctx, steps...) })
}

func (p *Page) check(what string, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("browser: %s: %v", what, err)
	}
}
