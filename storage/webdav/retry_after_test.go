package webdav

import (
	"testing"
	"time"

	"weir/storage"
)

// TestRetryAfter checks that the caller gets the wait of 429 and 503, which is in seconds or a
// date.
func TestRetryAfter(t *testing.T) {
	date := time.Now().Add(time.Hour).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
	for answer, want := range map[string]time.Duration{
		"503 Busy\r\nRetry-After: 7":                       7 * time.Second,
		"429 Slow Down\r\nretry-after:  120":               2 * time.Minute,
		"503 Busy\r\nRetry-After: " + date:                 time.Hour,
		"503 Busy\r\nRetry-After: soon":                    0,
		"503 Busy\r\nRetry-After: -5":                      0,
		"503 Busy":                                         0,
		"500 Broken\r\nRetry-After: 7":                     0,
		"503 Busy\r\nRetry-After: 99999999999999999999999": 0,
	} {
		p := speak(t, "127.0.0.1", say("HTTP/1.1 "+answer+"\r\nContent-Length: 0\r\n\r\n"))
		c := clientAt(t, p.url, storage.Credentials{})
		_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "x", Timeout: 20 * time.Second}, &events{})
		if got := storage.RetryAfter(err); got > want || got < want-time.Minute && want == time.Hour || got != want && want < time.Hour {
			t.Errorf("%q: %v, want %v (%v)", answer, got, want, err)
		}
	}
}
