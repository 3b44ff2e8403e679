package steps

import (
	"testing"

	"weir/loadtest/scenario"
)

// The time of a task is unknown in the open model, and if no task ended.
func TestUnknownTaskSeconds(t *testing.T) {
	open := &Run{Plan: &scenario.Plan{Model: "open"}}
	if open.taskSeconds(&Working{Figures: &Figures{Tasks: 1, ActiveClients: 1, Duration: 1}}) != nil ||
		(&Run{Plan: &scenario.Plan{}}).taskSeconds(&Working{Figures: &Figures{ActiveClients: 1, Duration: 1}}) != nil {
		t.Error("a time of tasks that nobody knows")
	}
}
