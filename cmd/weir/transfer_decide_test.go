package main

import (
	"errors"
	"testing"

	"weir/transfer"
)

// The text after a decision has the status of the request only once.
func TestDecisionsInWords(t *testing.T) {
	for _, c := range []struct {
		done string
		at   transfer.Status
		want string
	}{
		{"is cancelled", transfer.Cancelled, "is cancelled"},
		{"is cancelled", transfer.Running, "is being cancelled: copies under way are aborted"},
		{"goes on", transfer.Running, "goes on: running"},
		{"is cancelled", transfer.Completed, "is cancelled: completed"},
	} {
		if got := decided(c.done, c.at); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := ofRequest(2, errors.New("request 2 does not await approval: it is running")).Error(); got != "request 2 does not await "+
		"approval: it is running" {
		t.Error(got)
	}
	if got := ofRequest(2, errors.New("the coordinator does not answer")).Error(); got != "request 2: the coordinator does not answer" {
		t.Error(got)
	}
}
