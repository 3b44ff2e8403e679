package validity

import (
	"testing"

	"weir/loadtest/analysis/links"
)

// A challenge is not valid if weir itself was late.
func TestControl(t *testing.T) {
	t.Parallel()
	busy := 0.99
	for name, c := range map[string]struct {
		control links.Control
		status  string
	}{
		"in time":         {links.Control{}, OK},
		"busy, but late":  {links.Control{CPU: &busy, Starved: 2}, Fail},
		"busy, in time":   {links.Control{CPU: &busy}, OK},
		"some gaps":       {links.Control{Missing: 0.02, Gap: 12}, Warn},
		"many gaps":       {links.Control{Missing: 0.2, Gap: 120}, Fail},
		"resumed, no gap": {links.Control{Resumes: 2}, OK},
	} {
		got := checkControl(&links.Challenge{Minute: 60, Seconds: 1800, Control: c.control})
		if got.Status != c.status || (got.Status != OK) != (got.Effect != "") {
			t.Errorf("%s: %s: %s", name, got.Status, got.Text())
		}
		if (c.control.CPU == nil) != (len(got.notes) == 1) {
			t.Errorf("%s: %+v", name, got.notes)
		}
	}
	if got := checkControl(&links.Challenge{}); got.Status != Fail {
		t.Errorf("without lines: %s", got.Text())
	}
}

// A challenge of which no copy arrived has no result; failures of some copies are its result.
func TestCopies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		total  links.Total
		status string
	}{
		"arrived":      {links.Total{Files: 5, Achieved: 1e6}, OK},
		"most fail":    {links.Total{Files: 1, Failed: 99, Achieved: 1e3}, OK},
		"all refused":  {links.Total{Failed: 32}, Fail},
		"all cut off":  {links.Total{Failed: 3, Achieved: 1e6}, Fail},
		"none ended":   {links.Total{Achieved: 1e6}, Warn},
		"nothing came": {links.Total{}, Fail},
	} {
		got := checkCopies(&links.Challenge{Minute: 60, Seconds: 1800, Total: c.total})
		if got.Status != c.status || (got.Status != OK) != (got.Effect != "") {
			t.Errorf("%s: %s: %s", name, got.Status, got.Text())
		}
	}
}

// A challenge without a minute that can be judged is suspect.
func TestLong(t *testing.T) {
	t.Parallel()
	for level, status := range map[float64]string{0: Warn, 12: OK} {
		if got := checkLong(&links.Challenge{Minute: 12, Seconds: 13, LevelSeconds: level, Level: 1}); got.Status != status {
			t.Errorf("%v s: %s: %s", level, got.Status, got.Text())
		}
	}
	if got := checkLong(&links.Challenge{}); got.Status != Skipped {
		t.Errorf("without lines: %s", got.Text())
	}
}

// Phases are unknown without times, and suspect if clocks differ.
func TestPhases(t *testing.T) {
	t.Parallel()
	c := &links.Challenge{Links: []links.Link{{}}}
	if got := checkPhases(c); got.Status != Skipped {
		t.Errorf("%s", got.Text())
	}
	c.Links[0].Whole, c.Links[0].Queue = &links.Phase{Count: 5}, &links.Phase{Count: 3}
	if got := checkPhases(c); got.Status != OK {
		t.Errorf("%s", got.Text())
	}
	c.Clock = new(90.0)
	if got := checkPhases(c); got.Status != Warn {
		t.Errorf("%s", got.Text())
	}
}

// Missing bytes at the hosts of a site are suspect; foreign traffic is only reported.
func TestAgree(t *testing.T) {
	t.Parallel()
	for off, status := range map[float64]string{0: OK, 0.005: OK, 0.3: OK, -0.02: OK, -0.2: Warn} {
		c := &links.Challenge{Sites: []links.Site{{Site: "A"}, {Site: "B", HostIn: &links.Counted{Hosts: 1, Moved: 1, Off: off}}}}
		if got := checkAgree(c); got.Status != status || (off > bytesOK || off < -bytesOK) != (len(got.Facts) > 1 || got.Status == Warn) {
			t.Errorf("%v: %s: %s", off, got.Status, got.Text())
		}
	}
	if got := checkAgree(&links.Challenge{Sites: []links.Site{{Site: "A"}}}); got.Status != Skipped {
		t.Errorf("%s", got.Text())
	}
}
