// Package fts implements the formats of FTS3's REST API, version 3.14: it parses and checks
// submissions, and writes states of jobs and files in the notation of FTS3, so that Rucio's
// transfertool and FTS's own clients use a coordinator without a change.
//
// A parameter that weir does not support is refused with a reason. docs/fts.md compares the
// parameters. The package has no server: transfer/coordinator handles the requests.
package fts

import (
	"crypto/rand"
	"crypto/sha1" // UUIDs of version 5 are defined by it
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// An Error is a response that refuses a request. FTS's clients show Message.
type Error struct {
	Status  int
	Message string
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Refuse returns an Error.
func Refuse(status int, format string, a ...any) *Error {
	return &Error{status, fmt.Sprintf(format, a...)}
}

func bad(format string, a ...any) *Error { return Refuse(http.StatusBadRequest, format, a...) }

// StatusText returns a status in the notation of FTS's responses: "404 Not Found".
func StatusText(status int) string {
	if status == http.StatusOK {
		return "200 Ok"
	}
	return fmt.Sprintf("%d %s", status, http.StatusText(status))
}

// Time formats a time as FTS does, in UTC without a zone. It returns nil for the zero time.
func Time(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05")
}

// TimeText returns the same as Time, as a text, or "" for the zero time.
func TimeText(t time.Time) string {
	text, _ := Time(t).(string)
	return text
}

// Truth reads a flag of a form or of JSON: true, a number other than 0, or a text such as "true".
func Truth(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case float64:
		return v != 0
	case string:
		return v != "" && v != "0" && !strings.EqualFold(v, "false") && !strings.EqualFold(v, "off")
	}
	return false
}

// Integer reads an integer of a form or of JSON; an absent integer is 0. It reports false for other
// values, or if the value is out of range.
func Integer(v any, least, most int64) (int64, bool) {
	switch v := v.(type) {
	case nil:
		return 0, true
	case float64:
		return int64(v), v == math.Trunc(v) && v >= float64(least) && v <= float64(most)
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil && n >= least && n <= most
	}
	return 0, false
}

// BaseID is the name space of the ids of virtual organizations, in FTS and here.
const BaseID = "01874efb-4735-4595-bc9c-591aef8240c9"

// NewID returns a random id of a job, a UUID of version 4.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return uuid(b, 4)
}

// VOID returns the id of a virtual organization.
func VOID(vo string) string { return uuid5(BaseID, vo) }

// DeterministicID returns the id of the job of a virtual organization with the seed that its client chose, params.sid.
func DeterministicID(vo, sid string) string { return uuid5(VOID(vo), sid) }

// uuid5 returns the UUID of version 5 of a name (RFC 9562, section 5.5).
func uuid5(space, name string) string {
	h := sha1.New()
	_, _ = h.Write(uuidBytes(space))
	_, _ = h.Write([]byte(name))
	return uuid([16]byte(h.Sum(nil)[:16]), 5)
}

func uuidBytes(text string) []byte {
	var b []byte
	for _, part := range []string{text[:8], text[9:13], text[14:18], text[19:23], text[24:]} {
		some, _ := hex.DecodeString(part) // it is always valid here
		b = append(b, some...)
	}
	return b
}

func uuid(b [16]byte, version byte) string {
	b[6], b[8] = b[6]&0x0f|version<<4, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
