package header

import (
	_ "embed" // vocabulary.txt
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// A role is the part that a term has in a name.
type role int

const (
	roleUnknown role = iota
	roleClients
	roleJob
	roleItem
	roleKind
	roleThroughput
	roleRate
	roleLatency
	roleErrors
	roleErr
	roleSuccess
	roleDone
	roleMoment
	roleStamp
	roleStep
	roleSpan
	roleStatistic
	rolePercentile
	roleData  // a unit of data
	roleSpeed // a unit of data per second in one word
	roleTime  // a unit of time
	roleRatio
	roleErrorRatio
	roleSuccessRatio
	rolePersecond
	roleMultiple
	rolePer
	roleEach
	rolePlace
	roleCount // the word number
	roleNumber
	roleConcurrent
	roleResponse
	roleAmount    // data of a transfer
	roleAmbiguous // a word with several meanings
	roleOver
	roleTotal
	roleFiller
)

// A term is a word or phrase of a name.
type term struct {
	text  string // as written
	word  string // of a statistic: its name
	role  role
	value float64 // of units of time, ratios and multiples
	data  data
}

//go:embed vocabulary.txt
var vocabularyText string

// vocabulary returns the terms by their words in lower case, and the largest number of words.
//
//nolint:gochecknoglobals // parsed once
var vocabulary = sync.OnceValues(func() (map[string]term, int) { return parseVocabulary(vocabularyText) })

func parseVocabulary(text string) (all map[string]term, most int) {
	roles := map[string]role{
		"clients": roleClients, "job": roleJob, "item": roleItem, "kind": roleKind, "throughput": roleThroughput, "rate": roleRate,
		"latency": roleLatency, "errors": roleErrors, "err": roleErr, "success": roleSuccess, "done": roleDone, "time": roleMoment,
		"step": roleStep, "span": roleSpan, "percentile": rolePercentile, "ratio": roleRatio, "persecond": rolePersecond, "per": rolePer,
		"error-ratio": roleErrorRatio, "success-ratio": roleSuccessRatio, "each": roleEach, "place": rolePlace, "number": roleCount,
		"concurrent": roleConcurrent, "over": roleOver, "total": roleTotal, "response": roleResponse,
		"stamp": roleStamp, "amount": roleAmount, "ambiguous": roleAmbiguous, "filler": roleFiller,
	}
	all = map[string]term{}
	for line := range strings.Lines(text) {
		key, words, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || key == "#" {
			continue
		}
		t := term{role: roleStatistic, word: key}
		name, value, scaled := strings.Cut(key, ":")
		if r, ok := roles[name]; ok {
			t = term{role: r}
		}
		if scaled { // a factor, or 1 for a word that may also be a name or a yes
			t.value, _ = strconv.ParseFloat(value, 64)
		}
		if name == "time" && scaled {
			t.role = roleTime
		}
		for w := range strings.SplitSeq(words, ",") {
			w = strings.TrimSpace(w)
			all[w] = t
			most = max(most, len(strings.Fields(w)))
		}
	}
	return all, most
}

// A token is a word of a name as written.
type token struct {
	text      string
	slash     bool // a slash is before it
	bracketed bool
	attached  bool // to the token before it, without a blank
}

// terms splits a name into terms: phrases of the vocabulary, the longest first, units and
// percentiles.
func terms(name string) []term {
	words, most := vocabulary()
	tokens := split(strings.ReplaceAll(name, "I/O", "IO"))
	var all []term
	for i := 0; i < len(tokens); {
		if tokens[i].slash {
			all = append(all, term{role: rolePer, text: "/"})
		}
		t, n := phrase(tokens[i:], words, most)
		if n == 0 {
			t, n = single(tokens, i, words), 1
		}
		all = append(all, t)
		i += n
	}
	return percentiles(all)
}

// phrase returns the longest phrase of the vocabulary at the beginning of tokens; n is 0 if there
// is none.
func phrase(tokens []token, words map[string]term, most int) (t term, n int) {
	for n = min(most, len(tokens)); n > 1; n-- {
		var parts []string
		for j, tok := range tokens[:n] {
			if j > 0 && tok.slash {
				parts = nil
				break
			}
			parts = append(parts, strings.ToLower(tok.text))
		}
		if t, ok := words[strings.Join(parts, " ")]; ok && len(parts) == n {
			t.text = strings.Join(parts, " ")
			return t, n
		}
	}
	return term{}, 0
}

var (
	percentileForm = regexp.MustCompile(`^(?i:p|pct|perc|q)?\(?(\d{1,3}(?:[.,]\d+)?)\)?(?i:th|st|nd|rd|%|%ile|ile|p|pct|perc)?$`)
	numberForm     = regexp.MustCompile(`^\d+(?:[.,]\d+)?(?i:ms|s|m|min|h)?$`) // also a length of time, as in "over 10s"
)

// single returns the term of one token.
func single(tokens []token, i int, words map[string]term) term {
	tok := tokens[i]
	lower := strings.ToLower(tok.text)
	alone := func(t term) term {
		t.text = tok.text
		return t
	}
	switch {
	case lower == "n" && len(tokens) == 1:
		return term{role: roleClients, text: tok.text}
	case lower == "t" && len(tokens) == 1:
		return term{role: roleMoment, text: tok.text}
	case lower == "run" && len(tokens) == 1:
		return term{role: roleStep, text: tok.text}
	case plural(tokens, i) && countable(words[strings.ToLower(tokens[i-1].text)].role):
		return term{role: roleFiller, text: tok.text}
	case lower == "min" && (tok.slash || tok.bracketed || i > 0 && words[strings.ToLower(tokens[i-1].text)].role == rolePer):
		return term{role: roleTime, text: tok.text, value: 60}
	case numberForm.MatchString(lower):
		return term{role: roleNumber, text: tok.text}
	case percentileForm.MatchString(lower):
		return term{role: rolePercentile, text: tok.text, word: percentile(percentileForm.FindStringSubmatch(lower)[1], lower)}
	}
	if t, ok := words[lower]; ok && tok.text != "Ko" && (lower != "ko" || len(tokens) == 1 || tok.text == "KO") { // kilo-octets
		if t.role == rolePercentile {
			t.word = "" // its number stands beside it
		}
		return alone(t)
	}
	if d, ok := parseData(tok.text); ok {
		return term{role: roleData, text: tok.text, data: d}
	}
	if d, ok := parseSpeed(tok.text); ok {
		return term{role: roleSpeed, text: tok.text, data: d}
	}
	return scaled(tok)
}

// scaled reads k before operations, as in "k ops/s" and "kops/s".
func scaled(tok token) term {
	if tok.text == "k" || tok.text == "K" || tok.text == "M" {
		return term{role: roleMultiple, text: tok.text, value: map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6}[tok.text]}
	}
	return term{role: roleUnknown, text: tok.text}
}

// plural reports whether a token is the s of a word such as client(s).
func plural(tokens []token, i int) bool {
	tok := tokens[i]
	return i > 0 && tok.text == "s" && tok.bracketed && tok.attached && !tok.slash && !tokens[i-1].bracketed
}

func countable(r role) bool {
	return r == roleClients || r == roleJob || r == roleItem || r == roleStep
}

// percentile returns the name of a percentile: 95 and 0.95 are p95, p999 is p99.9, 50 is the median.
func percentile(digits, form string) string {
	digits = strings.Replace(digits, ",", ".", 1)
	x, err := strconv.ParseFloat(digits, 64)
	switch {
	case err != nil:
		return ""
	case x > 0 && x < 1 && strings.Contains(digits, "."):
		x *= 100
	case x > 100 && strings.HasPrefix(form, "p"): // p999
		x /= 10
	}
	switch x {
	case 50:
		return Median
	case 100:
		return Max
	}
	return "p" + strconv.FormatFloat(float64(int(x*1e4+0.5))/1e4, 'f', -1, 64)
}

// percentiles joins the word percentile with the number beside it.
func percentiles(all []term) []term {
	for i := range all {
		if all[i].role != rolePercentile || all[i].word != "" {
			continue
		}
		for _, j := range []int{i + 1, i - 1} {
			if j < 0 || j >= len(all) || all[j].role != roleNumber && all[j].role != rolePercentile {
				continue
			}
			if all[j].role == roleNumber {
				all[i].word, all[j].role = percentile(all[j].text, ""), roleFiller
			} else {
				all[i].role = roleFiller
			}
			break
		}
		if all[i].role == rolePercentile && all[i].word == "" {
			all[i].role = roleUnknown
			if w := strings.ToLower(all[i].text); w == "pct" || w == "perc" {
				all[i].role, all[i].value = roleRatio, 0.01
			}
		}
	}
	return all
}

// split splits a name into tokens. Slashes, brackets, blanks and punctuation separate tokens, and so
// does a capital letter in words that are not units, as in responseTime.
func split(name string) []token {
	words, _ := vocabulary()
	var out []token
	depth, slash, attached := 0, false, false
	var b strings.Builder
	flush := func() {
		if b.Len() == 0 {
			return
		}
		for i, part := range camel(b.String(), words) {
			out = append(out, token{part, slash && i == 0, depth > 0, attached || i > 0})
		}
		slash, attached = false, true
		b.Reset()
	}
	all := []rune(name)
	for i, r := range all {
		inNumber := (r == '.' || r == ',') && i > 0 && i+1 < len(all) && unicode.IsDigit(all[i-1]) && unicode.IsDigit(all[i+1])
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || inNumber || strings.ContainsRune("°±\u0303\u0301\u0308", r):
			b.WriteRune(r)
		case r == '%':
			if b.Len() > 0 && !unicode.IsDigit(all[i-1]) {
				flush()
			}
			b.WriteRune(r)
		case r == '#':
			flush()
			b.WriteRune(r)
			flush()
		default:
			if b.Len() == 1 && r == '(' && strings.EqualFold(b.String(), "p") && i+1 < len(all) && unicode.IsDigit(all[i+1]) {
				continue // p(95)
			}
			flush()
			switch r {
			case '/', '∕', '÷':
				slash = true
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth--
			}
			attached = attached && !unicode.IsSpace(r)
		}
	}
	flush()
	return out
}

// camel splits a word before capital letters unless it is a word of the vocabulary or a unit.
func camel(word string, words map[string]term) []string {
	if _, ok := words[strings.ToLower(word)]; ok {
		return []string{word}
	}
	if _, ok := parseData(word); ok {
		return []string{word}
	}
	if _, ok := parseSpeed(word); ok {
		return []string{word}
	}
	if percentileForm.MatchString(word) {
		return []string{word}
	}
	var out []string
	all, from := []rune(word), 0
	for i := 1; i < len(all); i++ {
		upper := unicode.IsUpper(all[i])
		if upper && unicode.IsLower(all[i-1]) || upper && unicode.IsUpper(all[i-1]) && i+1 < len(all) && unicode.IsLower(all[i+1]) {
			out, from = append(out, string(all[from:i])), i
		}
	}
	out = append(out, string(all[from:]))
	if len(out) == 1 {
		return multiple(word, words)
	}
	return out
}

// multiple splits kops into k and ops.
func multiple(word string, words map[string]term) []string {
	if first := word[0]; first == 'k' || first == 'K' || first == 'M' {
		if r := words[strings.ToLower(word[1:])].role; r == roleItem || r == rolePersecond {
			return []string{word[:1], word[1:]}
		}
	}
	return []string{word}
}
