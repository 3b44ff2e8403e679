package webdav

import (
	"strings"
	"testing"
)

// TestTitles checks that the title or heading of an error page is returned unless it repeats the
// status.
func TestTitles(t *testing.T) {
	for page, want := range map[string]string{
		"<title>400 No required SSL certificate was sent</title><h1>400 Bad Request</h1>": "No required SSL certificate was sent",
		"<HTML><TITLE>400 Bad Request</TITLE><H1>Bad Request</H1>":                        "",
		"<title>400 Bad Request</title><h1>Disk &amp; quota\n are full</h1>":              "Disk & quota  are full",
		"<title>Error response</title><h1>Error response</h1>":                            "",
		"<title></title><h1>no":                           "no",
		"<title>" + strings.Repeat("x", 300) + "</title>": strings.Repeat("x", 200),
		"\xff\xfe<title>\x1b[31m</title>":                 "[31m",
		"":                                                "",
	} {
		if got := titleOf([]byte(page), 400, "Bad Request"); got != want {
			t.Errorf("%q: %q, want %q", page, got, want)
		}
	}
}
