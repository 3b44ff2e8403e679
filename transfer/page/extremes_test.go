package page_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/lab/browser"
	"weir/transfer"
	"weir/transfer/catalog"
)

// long returns names of the maximum length, without a place to break them.
const longName = 255

// extreme returns a coordinator with so many requests, whose names have the maximum length if long
// is true.
func extreme(p *pretender, requests int, long bool) {
	busy(p)
	name := func(s string) string {
		if long {
			s += "/" + strings.Repeat("n", longName) + "/" + strings.Repeat("W", longName)
		}
		return s
	}
	now, first := time.Now(), p.requests
	p.requests = nil
	for i := range requests {
		r := first[2+i%3]
		r.ID, r.Made = int64(i+1), now.Add(time.Duration(i-requests)*time.Second)
		if long {
			r.Comment, r.By, r.To = strings.Repeat("comment", 300), strings.Repeat("b", 200)+"@cern.example", strings.Repeat("S", 64)
		}
		r.Dataset = name(r.Dataset)
		p.requests = append(p.requests, r)
	}
	if !long {
		return
	}
	for i := range p.datasets {
		p.datasets[i].Name = name(p.datasets[i].Name)
		p.datasets[i].At[strings.Repeat("S", 64)] = 3
	}
	p.sites = append(p.sites, catalog.Site{Name: strings.Repeat("S", 64), Kind: "http", URL: "https://" + strings.Repeat("host.", 40) +
		"example:8443/" + strings.Repeat("p", 600), Seen: now, Problem: strings.Repeat("it does not answer ", 60) + strings.Repeat("x", 300)})
	p.links = append(p.links, transfer.Link{Source: strings.Repeat("S", 64), Dest: strings.Repeat("S", 64), Active: 1, Limit: 1e6,
		Why: strings.Repeat("w", 400), Rate: 1e12})
	p.reasons = []transfer.Reason{{Files: 1 << 40, File: name("/store"), Text: strings.Repeat("no site that has it is up ", 20) +
		strings.Repeat("r", 300)}}
	item := p.item
	p.item = func(r transfer.Request, id int64) transfer.Item {
		i := item(r, id)
		i.Reason += strings.Repeat("z", 500)
		return i
	}
}

// With no request, with one request, with a thousand, and with names and reasons of the maximum
// length, each view fits and stays readable, on phones as well.
func TestExtremes(t *testing.T) {
	t.Parallel()
	bundled(t)
	for _, c := range []struct {
		name     string
		requests int
		long     bool
	}{{"none", 0, false}, {"one", 1, false}, {"many", 1000, false}, {"long", 40, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := pretend(t)
			if c.name != "none" {
				extreme(s, c.requests, c.long)
			}
			p := browser.Open(t, s.URL+"/#code="+s.page.Code("admin:bob"), 1400, 900)
			p.Wait(`document.querySelector("nav")`)
			for _, look := range []struct {
				name  string
				width int
				how   []browser.Option
			}{{"wide", 1400, nil}, {"narrow", 360, []browser.Option{browser.Dark()}}} {
				p.Resize(look.width, 900)
				p.Show(look.how...)
				for _, at := range []string{"#/", "#/requests", "#/requests/1", "#/datasets", "#/sites", "#/links"} {
					p.Eval(`location.hash = "`+at+`"`, nil)
					p.Wait(`document.querySelector("main")?.textContent.length > 10 && !document.querySelector("main").textContent.includes("Loading")`)
					if at == "#/requests" && c.requests > 0 {
						p.Wait(fmt.Sprintf(`document.querySelectorAll("tbody tr").length >= %d`, min(c.requests, 30)))
					}
					p.Fits(look.width)
					p.Headings()
					p.Picture(fmt.Sprintf("extreme-%s-%s%s", c.name, look.name, strings.ReplaceAll(at, "/", "-")))
				}
			}
			p.Silent("404")
		})
	}
}
