package analysis

import (
	"fmt"

	"weir/internal/unit"
	"weir/storage"
)

// checkVerification asks whether payloads were what they should be. One that
// was wrong is evidence; those that could not be judged are not.
func (d *data) checkVerification(f *Findings) Check {
	c := Check{Name: "verification", Status: OK}
	_, _, by := counts(f)
	var checked int64
	for i := range f.Curve {
		checked += f.Curve[i].Verified
	}
	payloads, share := d.payloads(), float64(d.plan.Work.Verify)
	c.Detail = fmt.Sprintf("%d payloads of %d were checked and right", checked, payloads)
	d.noteUnverified(&c)
	switch wrong := by[storage.Checksummed]; {
	case wrong > 0:
		c.Detail = fmt.Sprintf("%d payloads were wrong, %d right", wrong, checked)
		c.worsen(Fail, "bytes that are not the files' content count as payload")
	case d.moved == 0:
		c.Status, c.Detail = Skipped, "no payload was moved"
	case checked > 0:
	case len(c.notes) > 0:
		c.Status, c.Detail = Skipped, c.notes[0].Unchecked
	case share <= 0:
		c.unchecked("payloads: workload.verify is 0", "set workload.verify")
	default:
		c.unchecked(fmt.Sprintf("payloads: none of %d was checked, of which %s were to be", payloads, unit.Percent(share)), "hold longer, or raise workload.verify")
	}
	return c
}

// payloads returns how many operations of the hold times moved whole payloads.
func (d *data) payloads() (n int64) {
	for _, kind := range []storage.Kind{storage.Read, storage.Write} {
		if t := d.kinds[kind.String()]; t != nil {
			n += t.done
		}
	}
	return n
}

// noteUnverified tells of payloads that were to be checked and could not be.
func (d *data) noteUnverified(c *Check) {
	for _, kind := range []storage.Kind{storage.Read, storage.Write} {
		t := d.kinds[kind.String()]
		if t == nil || t.unverified == 0 {
			continue
		}
		why, remedy := "the service gave no checksum for them, or not in time", "let the run make its files (files.make), or have the service give checksums"
		switch {
		case kind == storage.Write:
			why, remedy = "the service gave their checksum more slowly than they came, or not before the run ended", "lower workload.verify"
		case d.inParts():
			why, remedy = "only parts of files were read, and a service's checksum is that of a whole file", "let the run make its files (files.make): then the content of each part is known"
		case d.plan.Files.Make != nil:
			remedy = "lower workload.verify"
		}
		c.note(fmt.Sprintf("%d payloads of %d (%s): %s", t.unverified, t.done, kind, why), remedy)
	}
}

// inParts tells whether clients read parts of files.
func (d *data) inParts() bool { return d.plan.Work.Part != nil || d.plan.Work.Job != nil }
