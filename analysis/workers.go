package analysis

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"weir/internal/unit"
	"weir/measure"
)

// missingFail is the share of a step's planned clients that may be missing
// before its place on the curve is wrong.
const missingFail = 0.1

// checkWorkers asks whether all processes of a run of many stayed to its end:
// the clients of one that was lost are missing from then on, though the curve
// is drawn over the planned ones. It returns nil for a run of one process.
func (d *data) checkWorkers(f *Findings) *Check {
	c := &Check{Name: "workers", Status: OK}
	var lost []string
	var first time.Time
	for _, e := range d.events {
		if who, _, ok := strings.Cut(e.Text, " was lost: "); ok && e.Kind == "warning" && strings.HasPrefix(who, "worker ") {
			if len(lost) == 0 || e.Time.Before(first) {
				first = e.Time
			}
			where := d.when(e.Time)
			lost = append(lost, who+where)
		}
	}
	n := d.processes()
	if len(lost) == 0 {
		if n < 2 {
			return nil
		}
		c.Detail = fmt.Sprintf("all %d stayed to the end", n)
		return c
	}
	c.Status = Warn
	c.Detail = fmt.Sprintf("lost %s", strings.Join(head(lost, 3), ", "))
	if missing, s := d.missing(f, first); s != nil && !f.Open() {
		c.Detail += fmt.Sprintf(": %.1f of the %s were there on average, %s were missing", s.ActiveClients, f.at(s), unit.Percent(missing))
		if missing >= missingFail {
			c.Status = Fail
			c.Detail += ", so the curve from there on is not that of its loads"
		}
	}
	return c
}

// processes returns how many processes the events say that steps ran in.
func (d *data) processes() int {
	in := regexp.MustCompile(`clients in (\d{1,6}) processes$`)
	most := 0
	for _, e := range d.events {
		if m := in.FindStringSubmatch(e.Text); e.Kind == "step" && m != nil {
			n, _ := strconv.Atoi(m[1]) // digits, by the expression
			most = max(most, n)
		}
	}
	return most
}

// when says in which phase of which step t lies.
func (d *data) when(t time.Time) string {
	for i := range d.seconds {
		s := &d.seconds[i]
		if t.Before(s.start) || !t.Before(s.end()) {
			continue
		}
		if s.phase == measure.Hold {
			return fmt.Sprintf(" while step %d was held", s.step)
		}
		return fmt.Sprintf(" in step %d before or after its hold", s.step)
	}
	return " outside of all steps"
}

// missing returns the largest share of planned clients that were not there in
// the hold of a step that ended after t, and that step; nil if there is none.
func (d *data) missing(f *Findings, t time.Time) (share float64, worst *Step) {
	ends := map[int]time.Time{}
	for i := range d.seconds {
		if s := &d.seconds[i]; s.phase == measure.Hold {
			ends[s.step] = s.end()
		}
	}
	for i := range f.Curve {
		s := &f.Curve[i]
		if s.Clients <= 0 || !ends[s.Step].After(t) {
			continue
		}
		if x := 1 - ratio(s.ActiveClients, float64(s.Clients)); worst == nil || x > share {
			share, worst = x, s
		}
	}
	return max(0, share), worst
}
