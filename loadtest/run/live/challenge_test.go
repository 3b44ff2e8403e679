package live

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"weir/loadtest/challenge"
	"weir/loadtest/challenge/conduct"
)

// After Ctrl-C the rest of the profile is neither shown as a bar nor as time left.
func TestEndingChallenge(t *testing.T) {
	v := NewChallenge(ChallengeOptions{Out: io.Discard, Challenge: &challenge.Challenge{}, Finish: context.Background()})
	v.Load()
	s := conduct.Status{Time: time.Now(), Stage: 1, Stages: 2, Share: 1, Links: 2, Left: 600, Length: 1000, Flight: 7}
	v.Status(s)
	if rows := strings.Join(v.rows(100), "\n"); !strings.Contains(rows, "40%") || !strings.Contains(rows, " left") {
		t.Errorf("while the profile is held: %s", rows)
	}
	s.Ending = true
	v.Status(s)
	if rows := strings.Join(v.rows(100), "\n"); !strings.Contains(rows, "the last copies end") || strings.Contains(rows, "%") ||
		strings.Contains(rows, " left") || !strings.Contains(rows, "7 in flight") {
		t.Errorf("while it ends: %s", rows)
	}
}
