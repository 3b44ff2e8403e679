package pause

import (
	"net/http"
	"strconv"
	"time"
)

// After is the pause that a server asks for with Retry-After (RFC 9110, section
// 10.2.3: seconds, or a date), from now on, and at most so long. It is 0 if text is
// neither.
func After(text string, now time.Time, most time.Duration) time.Duration {
	d := time.Duration(0)
	if n, err := strconv.Atoi(text); err == nil {
		d = min(time.Duration(max(n, 0)), most/time.Second+1) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), most)
}
