// Package wire lets the parts of a program talk over networks that are not
// trusted: questions and answers in JSON over HTTPS.
//
// The server makes its own certificate, and whoever asks knows that certificate's
// fingerprint, so no authority is needed and nobody can stand in between. Both
// know a token. Questions are small, may be answered late (a long poll), and can
// be repeated until there is an answer; whether that is harmless is the affair
// of who asks. Somebody without the token can neither fill the server's memory
// nor hold it up.
package wire

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// An Error is an answer that is none: what the server says against a question.
type Error struct {
	Status int           // of HTTP
	Text   string        // for people
	After  time.Duration // when to ask again; 0 is not told
}

// Error implements error.
func (e *Error) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("HTTP status %d (%s)", e.Status, http.StatusText(e.Status))
	}
	return e.Text
}

// Refuse makes an Error.
func Refuse(status int, format string, a ...any) error {
	return &Error{Status: status, Text: fmt.Sprintf(format, a...)}
}

// Status returns that of the Error in err, 0 if the server was not reached or
// err is nil.
func Status(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

var errSilent = errors.New("nothing was heard from the server for a minute")
