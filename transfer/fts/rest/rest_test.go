package rest

import (
	"testing"

	"weir/transfer/access"
	"weir/transfer/api"
	"weir/transfer/fts"
)

// Sizes whose sum exceeds the range of integers do not count as small.
func TestApprovalOfEndlessJobs(t *testing.T) {
	t.Parallel()
	c := &API{approve: 1 << 40}
	q := &api.Call{Caller: access.Caller{Roles: []string{access.MaySubmit}}}
	s := &fts.Submission{Files: []fts.File{{Size: 1 << 50}, {Size: 1 << 62}, {Size: 1 << 62}}}
	if err := c.needsApproval(q, s); err == nil {
		t.Error("a job with more than 8 EiB needs no approval")
	}
}
