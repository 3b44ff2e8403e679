package validity

import (
	"strings"
	"testing"
	"time"

	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// TestFilesOfThisMachineCrossNoNetwork checks that the traffic of other programs is not compared
// with files of this machine.
func TestFilesOfThisMachineCrossNoNetwork(t *testing.T) {
	p := resultstest.Typical().Plan()
	p.Driver = "local"
	d := &Evidence{Run: &steps.Run{Plan: p, Down: 1 << 30}}
	d.Bytes = NewByteSums(d.Run)
	d.Bytes.AddBytes(&monitor.Sample{Time: time.Now(), Seconds: 1, Nets: []monitor.Net{{Name: "lo", Sent: 1 << 40}}}, time.Now(), true)
	if c := d.checkBytes(); c.Status != Skipped || !fact.Has(c.Facts, "check.bytes.no_network") {
		t.Errorf("%+v", c)
	}
}

// TestUnverifiablePayloadsAreNoted checks that a payload that could not be judged is no evidence
// against the others, even if all payloads should have been checked.
func TestUnverifiablePayloadsAreNoted(t *testing.T) {
	make100 := &scenario.Make{Count: 100}
	for name, c := range map[string]struct {
		kind   storage.Kind
		make   *scenario.Make
		part   *workload.Part
		remedy string
	}{
		"existing files": {storage.Read, nil, nil, "files.make"},
		"parts of them":  {storage.Read, nil, &workload.Part{Size: 10}, "files.make"},
		"made files":     {storage.Read, make100, nil, "workload.verify"},
		"writes":         {storage.Write, nil, nil, "workload.verify"},
	} {
		p := resultstest.Typical().Plan()
		p.Work.Verify, p.Work.Part, p.Files.Make = 1, c.part, c.make
		d := &Evidence{Run: &steps.Run{Plan: p, Moved: 1, Kinds: map[string]*steps.Total{c.kind.String(): {Sum: measure.Sum{Done: 50,
			Unverifiable: 10}}}}}
		got := d.checkVerification(steps.CurveOf([]steps.Figures{{Done: 50, Verified: 40, Unverified: 10}}, "", "", false))
		if got.Status != OK || len(got.notes) != 1 || !strings.Contains(got.notes[0].Remedy, c.remedy) {
			t.Errorf("%s: %+v", name, got)
		}
		got = d.checkVerification(steps.CurveOf([]steps.Figures{{Done: 50, Unverified: 50}}, "", "", false))
		if got.Status != Skipped || len(got.notes) != 1 {
			t.Errorf("%s, none checked: %+v", name, got)
		}
	}
}

// TestCopiesAreChecked checks that copies, which transfers are recorded as, count as payloads.
func TestCopiesAreChecked(t *testing.T) {
	d := &Evidence{Run: &steps.Run{Plan: resultstest.Typical().Plan(), Moved: 71,
		Kinds: map[string]*steps.Total{"copy": {Sum: measure.Sum{Done: 20, Verified: 20}}}}}
	c := d.checkVerification(steps.CurveOf([]steps.Figures{{Done: 20, Verified: 20}}, "", "", false))
	if c.Status != OK || d.payloads() != 20 {
		t.Errorf("%d payloads: %+v", d.payloads(), c)
	}
}

// TestOnlyPayloadsAreToBeChecked checks that operations without payload do not count as operations
// that should have been checked.
func TestOnlyPayloadsAreToBeChecked(t *testing.T) {
	d := &Evidence{Run: &steps.Run{Plan: resultstest.Typical().Plan(), Moved: 71,
		Kinds: map[string]*steps.Total{"read": {Sum: measure.Sum{Done: 2}},
			"stat": {Sum: measure.Sum{Done: 4882}}}}}
	c := d.checkVerification(steps.CurveOf([]steps.Figures{{Done: 4884}}, "", "", false))
	if c.Status != Skipped || !strings.Contains(c.Detail, "0 of 2 were checked") {
		t.Errorf("%+v", c)
	}
}
