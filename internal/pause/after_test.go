package pause

import (
	"testing"
	"time"
)

func TestAfter(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "soon": 0, "0": 0, "-5": 0, "-9223372036854775808": 0, "7": 7 * time.Second, "3600": time.Minute,
		"9223372036854775807":           time.Minute,
		"Sun, 22 Nov 2026 12:00:30 GMT": 30 * time.Second, "Sun, 22 Nov 2026 11:00:00 GMT": 0, "Mon, 23 Nov 2026 12:00:00 GMT": time.Minute,
	} {
		if got := After(text, now, time.Minute); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
