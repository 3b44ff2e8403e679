package manpage

import (
	"strings"
	"testing"
	"time"
)

// Text cannot become a macro or an escape of roff, and is filled in short lines.
func TestPage(t *testing.T) {
	p := Page{Name: "a-b", Chapter: 5, About: "one thing", Date: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Source: `x "1"`, Manual: "m"}
	p.Section("First")
	p.Paragraph(Plain(".so /etc/passwd"))
	p.Paragraph(Plain(`back\slash 'quoted' ` + "\u00e9 " + strings.Repeat("word ", 20)))
	p.Item(Bold("--out")+"="+Italic("DIR"), Plain("text"))
	p.Subsection("Second")
	p.Verbatim(".PP\n  two\n\n")
	const want = `.TH "A\-B" 5 "Mar 2026" "x \(dq1\(dq" "m"
.nh
.ad l
.SH NAME
a\-b \- one thing
.SH "FIRST"
\&.so /etc/passwd
.PP
back\eslash \(aqquoted\(aq \[u00E9] word word word word word word word word
word word word word word word word word word word word word
.TP
\fB\-\-out\fR=\fIDIR\fR
text
.SS "Second"
.RS 4
.nf
\&.PP
  two
.fi
.RE
`
	if got := p.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Markdown becomes sections, paragraphs, lists and items.
func TestMarkdown(t *testing.T) {
	const page = "# Title\n\nIntro with `code`, *x*, **y**, [a page](ftp.md#a) and [ftp.md](ftp.md).\n\n- [One](#one), [two](#two)\n\n" +
		"## One\n\n<!-- comment -->\n| key | takes | for |\n|---|---|---|\n| `a` | `x`, y | first |\n| `b` |  | second |\n\n" +
		"1. step\n2. another\n\n   more\n\n### Two\n\n```yaml\na: b\n```\n\n- point\n"
	p := Page{Name: "x", Chapter: 5}
	p.Markdown([]byte(page))
	const want = `.SH "DESCRIPTION"
Intro with \fBcode\fR, \fIx\fR, \fBy\fR, a page and ftp.html.
.SH "ONE"
.TP
\fBa\fR
first
.br
takes: \fBx\fR, y
.TP
\fBb\fR
second
.IP 1. 4
step
.IP 2. 4
another
.RS
.PP
more
.RE
.SS "Two"
.RS 4
.nf
a: b
.fi
.RE
.IP \(bu 2
point
`
	if got := p.body.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
