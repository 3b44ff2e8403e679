package page_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"

	"weir/internal/require"
	"weir/lab/browser"
	"weir/transfer"
	"weir/transfer/coordinator"
	"weir/transfer/transfertest"
)

// trusting has the browser accept the coordinator's own certificate.
func trusting(ctx context.Context) error {
	_, err := chromedp.Call(ctx, security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{Ignore: true})
	return err
}

// status returns a script that is true when a request's view shows a status.
func status(is string) string {
	return `document.querySelector("main .status")?.textContent === "` + is + `"`
}

// fill types a text into the field with a label.
func fill(p *browser.Page, label, text string) {
	p.Eval(`[...document.querySelectorAll("dialog label")].find((l) => l.textContent.startsWith("`+label+
		`")).querySelector("input, textarea, select").focus()`, nil)
	p.Keys(text)
}

// press presses the button with a name, in front of all other elements.
func press(p *browser.Page, name string) {
	p.Wait(`[...(document.querySelector("dialog[open]") ?? document).querySelectorAll("button")].some((b) => b.textContent === "` + name +
		`" && !b.disabled)`)
	p.Eval(`[...(document.querySelector("dialog[open]") ?? document).querySelectorAll("button")].find((b) => b.textContent === "`+name+
		`").setAttribute("data-press", "")`, nil)
	p.Press("[data-press]")
	p.Eval(`document.querySelectorAll("[data-press]").forEach((b) => b.removeAttribute("data-press"))`, nil)
}

// A service is a coordinator in this process.
type service struct {
	*coordinator.Coordinator
	*transfertest.Service

	conf coordinator.Config
}

func open(t *testing.T) *service {
	t.Helper()
	h := &service{conf: coordinator.Config{State: t.TempDir(), Listen: "127.0.0.1:0"}}
	h.Service = transfertest.Start(t, func(ctx context.Context) (transfertest.Coordinator, error) {
		c, err := coordinator.Open(ctx, h.conf)
		h.Coordinator = c
		return c, err
	})
	return h
}

// fill writes files of 1 MiB into the folder of a dataset and has the site's agent register them.
func (h *service) fill(a *transfertest.Agent, site, dataset string, from, to int) {
	h.T.Helper()
	for i := from; i < to; i++ {
		data := make([]byte, 1<<20)
		_, _ = rand.Read(data) // never fails
		a.Put(fmt.Sprintf("%s/f%02d.root", dataset, i), data)
	}
	h.Scan(dataset, site, dataset[1:])
}

// On a real coordinator with real agents: sign in with the link, request a dataset, approve it,
// watch it arrive, cancel another request, and read which files of a third request did not arrive,
// and why.
func TestTransferInBrowser(t *testing.T) {
	t.Parallel()
	bundled(t)
	h := open(t)
	a := h.Agent("A", transfertest.PassiveEndpoint())
	b := h.Agent("B", transfertest.PassiveEndpoint())
	h.Agent("C", transfertest.PassiveEndpoint())
	h.fill(a, "A", "/store/run1", 0, 6)
	h.fill(b, "B", "/store/run1", 6, 10)
	p := browser.Open(t, h.Link(h.NewToken("sam", "weir.submit", "weir.approve")), 1300, 900, trusting)
	t.Cleanup(func() {
		if t.Failed() {
			p.Picture("failed")
		}
	})
	p.Wait(`document.querySelector(".empty code")?.textContent.startsWith("weir transfer submit /store/run1 --to ")`)
	b.Stop()

	p.Press("#new")
	p.Wait(`document.querySelector("dialog[open]")`)
	fill(p, "Dataset", "/store/ru") // a name that is typed slowly: no request for it fails
	p.Wait(`document.querySelector("dialog").textContent.includes("No dataset with this name.")`)
	fill(p, "Dataset", "n1")
	p.Wait(`document.querySelector("dialog").textContent.includes("10 files, 10.5 MB; A has 6, B has 4")`)
	fill(p, "To", "C")
	p.Press("dialog summary")
	fill(p, "Attempts", "50")
	fill(p, "Comment", "for the page's test")
	p.Eval(`[...document.querySelectorAll("dialog label")].find((l) => l.textContent.startsWith("Approve")).querySelector("input").click()`,
		nil)
	p.Picture("real-form")
	press(p, "Submit")
	const size = `"10 files, 10.5 MB"`
	p.Wait(status("awaiting approval") + ` && document.querySelector(".state").textContent === ` + size)
	p.Picture("real-awaits")
	p.Eval(`location.hash = "#/"`, nil)
	p.Wait(`document.querySelector("[aria-label='Active requests'] .progress-words")?.textContent === ` + size)
	press(p, "Approve")
	p.Wait(`document.querySelector("dialog").textContent.includes(` + size + `)`)
	p.Picture("real-approve")
	press(p, "Approve it")
	p.Eval(`location.hash = "#/requests/1"`, nil)
	p.Wait(`document.querySelector(".state")?.textContent.includes("6 of 10 files")`) // B is down
	p.Wait(`document.querySelector(".reasons li")`)
	p.Picture("real-waits")
	h.StartAgent(b, "B", transfertest.PassiveEndpoint())
	p.Wait(status("completed") + ` && document.querySelector(".state").textContent.includes("all 10 files")`)
	p.Press(".chip.s-done")
	p.Wait(`document.querySelectorAll("tbody tr").length === 10`)
	p.Press("tbody button")
	p.Wait(`document.querySelector("dialog tbody")?.textContent.includes("read back")`)
	p.Picture("real-completed-file")
	p.Keys(browser.Escape)
	manifest(t, p, "#/requests/1", transfer.Completed, 10)

	// Two files vanish at the only site that has them.
	h.fill(a, "A", "/store/run2", 0, 10)
	for _, f := range []string{"f03.root", "f07.root"} {
		require.NoError(t, os.Remove(filepath.Join(a.Root, "store/run2", f)))
	}
	r, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run2", To: "C", Approve: true, Tries: 2})
	require.NoError(t, err)
	p.Eval(`location.hash = "#/"`, nil)
	p.Wait(`document.querySelector("[aria-label='Events']")?.textContent.includes("partial")`)
	p.Eval(`location.hash = "#/requests/`+itoa(r.ID)+`"`, nil)
	p.Wait(status("partial") + ` && document.querySelectorAll("tbody tr").length === 2`)
	for _, want := range []string{"/store/run2/f03.root", "/store/run2/f07.root", "failed"} {
		p.Wait(`document.querySelector("tbody").textContent.includes("` + want + `")`)
	}
	p.Picture("real-partial")
	manifest(t, p, "", transfer.Partial, 10)

	// A request that cannot continue is cancelled by keyboard alone.
	h.fill(b, "B", "/store/run3", 0, 3)
	b.Stop()
	if r, err = h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run3", To: "C", Approve: true, Tries: 50}); err != nil {
		t.Fatal(err)
	}
	p.Eval(`location.hash = "#/requests/`+itoa(r.ID)+`"`, nil)
	p.Wait(`document.querySelectorAll("tbody tr").length === 3 && [...document.querySelectorAll("button")].some((b) => b.textContent === "Cancel")`)
	p.Eval(`[...document.querySelectorAll("button")].find((b) => b.textContent === "Cancel").focus()`, nil)
	p.Keys("\r")
	p.Wait(`document.activeElement?.matches("dialog input")`)
	p.Picture("real-cancel")
	p.Keys("nobody needs it\r")
	p.Wait(status("cancelled") + ` && document.querySelector(".notice").textContent.includes("cancelled")`)
	p.Wait(`document.querySelector("main").textContent.includes("nobody needs it")`)
	for _, at := range []string{"#/", "#/requests", "#/datasets", "#/dataset?name=/store/run1", "#/sites", "#/links"} {
		p.Eval(`location.hash = "`+at+`"`, nil)
		p.Wait(`document.querySelectorAll("tbody tr").length > 1`)
		p.Picture("real-" + strings.Trim(filepath.Base(at), "#"))
	}
	p.Eval(`location.hash = "#/sites/A"`, nil)
	p.Wait(`document.querySelectorAll("canvas").length === 4`)
	p.Picture("real-site")
	p.Silent()
}

func itoa(n int64) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// manifest fails the test if the page's link leads to another manifest.
func manifest(t *testing.T, p *browser.Page, at string, is transfer.Status, files int) {
	t.Helper()
	if at != "" {
		p.Wait(`location.hash.startsWith("` + at + `")`)
	}
	var m transfer.Manifest
	p.Eval(`fetch(document.querySelector("a[download]").href).then((r) => r.json())`, &m)
	if m.Request.Status != is || len(m.Items) != files || m.Digest == "" {
		t.Errorf("the manifest is of a request that is %s, with %d files, digest %q", m.Request.Status, len(m.Items), m.Digest)
	}
}

// After a restart of the coordinator, the page is still signed in.
func TestPageOutlivesItsCoordinator(t *testing.T) {
	t.Parallel()
	bundled(t)
	h := open(t)
	p := browser.Open(t, h.Link(h.Address.Token), 400, 800, trusting)
	p.Wait(`document.querySelector(".wire")?.textContent.includes("connected")`)
	h.conf.Listen = strings.TrimPrefix(h.URL(), "https://")
	h.End()
	p.Wait(`document.querySelector(".wire.lost")`)
	h.Begin()
	p.Wait(`!document.querySelector(".wire.lost")`)
	h.Agent("A", transfertest.PassiveEndpoint())
	p.Wait(`document.querySelector(".cards").textContent.includes("1 of 1")`)
	p.Silent("ERR_")
}
