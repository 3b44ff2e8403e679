package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"weir/internal/require"
	"weir/lab/browser"
)

// The menu leads to every page.
func TestMenu(t *testing.T) {
	dir := made(t)
	menu, _, _ := strings.Cut(string(require.File(t, filepath.Join(dir, "index.html"))), "</nav>")
	files, err := filepath.Glob(filepath.Join(dir, "*.html"))
	require.NoError(t, err)
	for _, file := range files {
		if name := filepath.Base(file); name != "changelog.html" && !strings.Contains(menu, `<a href="`+name+`"`) {
			t.Errorf("%s is not in the menu", name)
		}
	}
}

// All links of the site lead to files and anchors of the site, and no page loads anything from the
// network.
func TestLinksOfSite(t *testing.T) {
	dir := made(t)
	anchors, links := map[string]map[string]bool{}, map[string][]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.html"))
	if err != nil || len(files) < 25 {
		t.Fatalf("%d pages, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		name := filepath.Base(file)
		anchors[name] = map[string]bool{}
		for tokens := html.NewTokenizer(bytes.NewReader(text)); tokens.Next() != html.ErrorToken; {
			for _, a := range tokens.Token().Attr {
				switch a.Key {
				case "id":
					anchors[name][a.Val] = true
				case "href":
					links[name] = append(links[name], a.Val)
				case "src", "srcset":
					if strings.Contains(a.Val, "://") {
						t.Errorf("%s loads %s", name, a.Val)
					}
					links[name] = append(links[name], a.Val)
				}
			}
		}
	}
	n := 0
	for from, all := range links {
		for _, link := range all {
			if strings.Contains(link, "://") || strings.HasPrefix(link, "data:") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			n++
			to, anchor, _ := strings.Cut(link, "#")
			if to == "" {
				to = from
			}
			if _, err := os.Stat(filepath.Join(dir, to)); err != nil {
				t.Errorf("%s: %v", from, err)
			} else if anchor != "" && !anchors[to][anchor] {
				t.Errorf("%s: %s has no #%s", from, to, anchor)
			}
		}
	}
	if n < 1000 {
		t.Errorf("only %d links", n)
	}
}

// In a browser a search leads to the heading, tables and pictures fit on a phone, and the same sources give the same bytes.
func TestSiteInABrowser(t *testing.T) {
	dir, again := made(t), made(t)
	for _, name := range []string{"index.html", "scenario.html", "index.js"} {
		one, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		if other, err := os.ReadFile(filepath.Join(again, name)); err != nil || !bytes.Equal(one, other) {
			t.Errorf("%s is another one the second time, %v", name, err)
		}
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	p := browser.Open(t, server.URL+"/index.html", 1280, 900)
	p.Headings()
	p.Picture("site-index")
	var hits []string
	p.Eval(`query.value = "second coordinator", query.dispatchEvent(new Event("input")), [...found.querySelectorAll("a")].map((a) => a.href)`, &hits)
	p.Picture("site-search")
	if len(hits) == 0 || !strings.HasSuffix(hits[0], "operating.html#a-second-coordinator") {
		t.Errorf("found %q", hits)
	}
	p.Eval(`query.value = "nosuchword", query.dispatchEvent(new Event("input")), [found.textContent]`, &hits)
	if len(hits) != 1 || hits[0] != "Nothing found" {
		t.Errorf("found %q", hits)
	}
	var shown []string
	const pages = `[getComputedStyle(document.querySelector("nav")).display, getComputedStyle(menu).display]`
	if p.Eval(pages, &shown); shown[0] == "none" || shown[1] != "none" {
		t.Errorf("on a wide screen the pages are %s, the menu's button %s", shown[0], shown[1])
	}
	p.Silent()
	for _, name := range []string{"index.html", "scenario.html", "operating.html", "truth.html"} {
		p := browser.Open(t, server.URL+"/"+name, 390, 844)
		p.Fits(390)
		if p.Eval(pages, &shown); shown[0] != "none" || shown[1] == "none" {
			t.Errorf("%s: on a phone the pages are %s, the menu's button %s", name, shown[0], shown[1])
		}
		if p.Eval("menu.click(), "+pages, &shown); shown[0] == "none" {
			t.Errorf("%s: the menu does not open", name)
		}
		p.Fits(390)
		p.Picture("site-phone-menu-" + strings.TrimSuffix(name, ".html"))
		p.Eval("menu.click(), "+pages, &shown)
		p.Headings()
		p.Picture("site-phone-" + strings.TrimSuffix(name, ".html"))
		p.Silent()
	}
}

// On all pages code and tables, which may be wider than the screen, are regions with a name of their own and can be scrolled with the
// keyboard.
func TestWidePartsHaveFocus(t *testing.T) {
	dir := made(t)
	files, err := filepath.Glob(filepath.Join(dir, "*.html"))
	require.NoError(t, err)
	region := regexp.MustCompile(`(?:<pre|<div class="wide") tabindex="0" role="region" aria-label="((?:Code|Table): [^"]+)"`)
	all := 0
	for _, file := range files {
		text := string(require.File(t, file))
		names, parts := map[string]bool{}, strings.Count(text, "<pre")+strings.Count(text, "<table>")
		for _, m := range region.FindAllStringSubmatch(text, -1) {
			names[m[1]] = true
		}
		if all += parts; len(names) != parts {
			t.Errorf("%s: %d of %d wide parts have a name of their own", file, len(names), parts)
		}
	}
	if all < 300 {
		t.Errorf("only %d wide parts", all)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	p := browser.Open(t, server.URL+"/index.html", 390, 844)
	for _, part := range []string{"pre", ".wide"} {
		p.Eval(`window.part = [...document.querySelectorAll("`+part+`")].find((e) => e.scrollWidth > e.clientWidth), part.focus()`, nil)
		p.Keys(browser.Right + browser.Right)
		p.Wait("part.scrollLeft > 0 && document.activeElement === part")
	}
}

// A link that leads nowhere is an error.
func TestDeadLink(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"README.md": "# weir\n", "ARCHITECTURE.md": "# A\n", "CONTRIBUTING.md": "# C\n[x](scenarios/none.md)\n", "CHANGELOG.md": "# L\n",
		"docs/README.md": "# Documentation\n",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	err := run([]string{"-source", dir, "-out", filepath.Join(dir, "site")}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "CONTRIBUTING.md: link scenarios/none.md") {
		t.Errorf("%v", err)
	}
}

func made(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, run([]string{"-source", "../..", "-out", dir}, &bytes.Buffer{}))
	return dir
}
