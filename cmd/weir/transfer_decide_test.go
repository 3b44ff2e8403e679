package main

import (
	"errors"
	"testing"

	"weir/transfer"
)

// A decision says what became of a request, once.
func TestDecisionsInWords(t *testing.T) {
	for _, c := range []struct {
		done string
		at   transfer.Status
		want string
	}{
		{"is cancelled", transfer.Cancelled, "is cancelled"},
		{"is cancelled", transfer.Running, "is being cancelled: copies that run are broken off"},
		{"goes on", transfer.Running, "goes on: running"},
		{"is cancelled", transfer.Completed, "is cancelled: completed"},
	} {
		if got := decided(c.done, c.at); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := ofRequest(2, errors.New("request 2 does not await approval: it is running")).Error(); got != "request 2 does not await approval: it is running" {
		t.Error(got)
	}
	if got := ofRequest(2, errors.New("the coordinator does not answer")).Error(); got != "request 2: the coordinator does not answer" {
		t.Error(got)
	}
}

// An attempt that was told too late is no success.
func TestLateAttemptsInWords(t *testing.T) {
	done := transfer.Outcome{Verified: true}
	for _, c := range []struct {
		a    transfer.Attempt
		want string
	}{
		{transfer.Attempt{Outcome: done}, "done, verified"},
		{transfer.Attempt{Late: true, Outcome: done}, "told too late, another attempt counts"},
		{transfer.Attempt{Late: true, Outcome: transfer.Outcome{Fault: transfer.Transient, Reason: "reset"}}, "transient: reset"},
	} {
		if got := outcomeOf(&c.a); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
