package serve

import (
	"net/http"
	"strings"
)

// farAway is a position beyond the end of every file; positions that do not fit into an int64 are beyond it as well.
const farAway = "999999999999999999"

// plainRange returns r with a Range header that net/http handles as RFC 9110 requires (section 14): another unit than bytes is ignored, the
// last zero bytes cannot be given, and a last position beyond all numbers is the end of the file.
func plainRange(r *http.Request) *http.Request {
	text := r.Header.Get("Range")
	if text == "" {
		return r
	}
	plain := ""
	if unit, specs, ok := strings.Cut(text, "="); ok && strings.EqualFold(strings.TrimSpace(unit), "bytes") {
		var some []string
		for spec := range strings.SplitSeq(specs, ",") {
			first, last, _ := strings.Cut(strings.TrimSpace(spec), "-")
			first, last = strings.TrimSpace(first), strings.TrimSpace(last)
			switch {
			case spec == "" || first == "" && last != "" && strings.Trim(last, "0") == "":
				continue
			case digits(first) && digits(last):
				spec = clipped(first) + "-" + clipped(last)
			}
			some = append(some, spec)
		}
		if len(some) == 0 {
			some = []string{farAway + "-"}
		}
		plain = "bytes=" + strings.Join(some, ",")
	}
	if plain == text {
		return r
	}
	own := *r
	own.Header = r.Header.Clone()
	own.Header.Del("Range")
	if plain != "" {
		own.Header.Set("Range", plain)
	}
	return &own
}

func digits(text string) bool { return strings.Trim(text, "0123456789") == "" }

// clipped returns a number of any length as a number that fits into an int64.
func clipped(number string) string {
	if short := strings.TrimLeft(number, "0"); len(short) > len(farAway) {
		return farAway
	}
	return number
}
