package table

import (
	"regexp"
	"strings"
)

// ruleForm matches lines that only draw: |---|, +----+, ---+---, |:--|, +====+.
var ruleForm = regexp.MustCompile(`^[\s|+:=-]*(?:--|==|:-|-:|\|-+\|)[\s|+:=-]*$`)

var rowCount = regexp.MustCompile(`^\(\d+ rows?\)$`)

// undrawn returns the rows of a table whose cells are separated by vertical bars, as in Markdown, in
// wikis and in the output of database clients. ok is false if the table is not such a table.
func undrawn(texts []textLine) (rows []textLine, ok bool) {
	first := strings.TrimSpace(texts[0].text)
	switch {
	case strings.HasPrefix(first, "{|"):
		return mediaWiki(texts), true
	case strings.HasPrefix(first, "|"), strings.HasPrefix(first, "+-"), strings.HasPrefix(first, "^"):
	case len(texts) > 1 && strings.Contains(first, "|") && ruleForm.MatchString(texts[1].text):
	default:
		return nil, false
	}
	for _, l := range texts {
		if ruleForm.MatchString(l.text) || rowCount.MatchString(strings.TrimSpace(l.text)) {
			continue
		}
		rows = append(rows, textLine{l.number, unmarked(unframed(l.text))})
	}
	return rows, len(rows) > 0
}

// unframed removes the bars at both ends of a row. Cells keep their positions.
func unframed(s string) string {
	s = strings.TrimRight(s, " \t")
	indent := len(s) - len(strings.TrimLeft(s, " \t"))
	switch row := s[indent:]; {
	case strings.HasPrefix(row, "||"): // a header of Jira and Confluence
		s = s[:indent] + strings.ReplaceAll(row, "||", " |")
	case strings.HasPrefix(row, "^"): // a header of DokuWiki
		s = s[:indent] + strings.ReplaceAll(row, "^", "|")
	case !strings.HasPrefix(row, "|"):
		return s
	}
	s = strings.TrimSuffix(s, "|")
	return strings.Replace(s, "|", " ", 1)
}

// unmarked replaces marks of bold text and code by blanks, so that columns keep their positions.
func unmarked(s string) string {
	return strings.NewReplacer("**", "  ", "'''", "   ", "`", " ", " *", "  ", "* ", "  ").Replace(s)
}

// mediaWiki returns the rows of a table of MediaWiki. A cell may have attributes before a bar.
func mediaWiki(texts []textLine) (rows []textLine) {
	var cells []string
	number := 0
	flush := func() {
		if len(cells) > 0 {
			rows = append(rows, textLine{number, strings.Join(cells, "|")})
		}
		cells = nil
	}
	for _, l := range texts[1:] {
		s := strings.TrimSpace(l.text)
		switch {
		case strings.HasPrefix(s, "|}"), strings.HasPrefix(s, "|-"):
			flush()
		case strings.HasPrefix(s, "|+"): // the caption
		case strings.HasPrefix(s, "|"), strings.HasPrefix(s, "!"):
			if len(cells) == 0 {
				number = l.number
			}
			for cell := range strings.SplitSeq(strings.ReplaceAll(s[1:], "!!", "||"), "||") {
				cell = cell[strings.LastIndex(cell, "|")+1:]
				cells = append(cells, strings.TrimSpace(unmarked(cell)))
			}
		}
	}
	flush()
	return rows
}
