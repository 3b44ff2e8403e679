package results

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"time"

	"weir/loadtest/challenge"
)

// A LinkInterval has what one link of a data challenge carried in an interval, and its control.
type LinkInterval struct {
	Start   time.Time        `json:"start"`
	Seconds float64          `json:"duration_seconds"`
	Stage   int              `json:"step"` // of the profile, from 1
	Source  string           `json:"source"`
	Dest    string           `json:"destination"`
	Target  float64          `json:"target_bytes_per_second"`
	Moved   int64            `json:"moved_bytes"`           // spread over the time between two reports of a copy
	Wrong   int64            `json:"wrong_bytes,omitempty"` // of this line and earlier ones: of complete copies whose verification failed then
	Flight  float64          `json:"in_flight"`             // copies that were requested and had not ended, mean
	Queued  float64          `json:"queued"`                // of these not begun by the service, mean
	Allowed int              `json:"allowed"`               // copies in flight, by the controller
	Started int              `json:"started,omitempty"`     // copies that were requested
	Done    int              `json:"done,omitempty"`
	Failed  int              `json:"failed,omitempty"`
	Late    float64          `json:"late_seconds,omitempty"` // without a decision of the controller that was due
	Reason  challenge.Reason `json:"reason"`                 // of the controller, for not more copies
}

// Links yields the lines of links.jsonl as Intervals does. Only data challenges have such a file.
func (r *Run) Links() iter.Seq2[*LinkInterval, error] {
	return lines(filepath.Join(r.Dir, LinksFile), checkLink)
}

// LinkInterval appends l to links.jsonl, which is created with the first. It must not be called
// concurrently.
func (w *Writer) LinkInterval(l *LinkInterval) (err error) {
	if w.links == nil {
		if w.links, err = w.later(LinksFile); err != nil {
			return err
		}
	}
	return appendJSON(w.links, l)
}

// later opens a file that only some runs have: a new file, or that of the run that is resumed.
func (w *Writer) later(name string) (*lineFile, error) {
	path := filepath.Join(w.dir, name)
	if !w.resumed {
		return newLineFile(path)
	}
	l, err := reopenLineFile(path)
	if err != nil {
		return nil, err
	}
	if l.size, err = mend(l.f); err != nil {
		return nil, errors.Join(err, l.f.Close())
	}
	return l, nil
}

// checkLink returns an error for numbers that are impossible in a line of a link.
func checkLink(l *LinkInterval) error {
	switch {
	case badTime(l.Start):
		return errors.New("damaged line: start is missing or impossible")
	case l.Stage < 0 || l.Stage > mostStep:
		return impossible("step", l.Stage)
	case l.Source == "" || l.Dest == "":
		return errors.New("damaged line: a link has a source and a destination")
	case !(l.Seconds >= 0 && l.Seconds <= mostSeconds):
		return impossible("duration_seconds", l.Seconds)
	case !(l.Late >= 0 && l.Late <= mostSeconds):
		return impossible("late_seconds", l.Late)
	case min(l.Moved, l.Wrong) < 0 || max(l.Moved, l.Wrong) > mostCount || !(l.Target >= 0 && l.Target <= float64(mostCount)):
		return fmt.Errorf("damaged line: moved_bytes %d, wrong_bytes %d or target_bytes_per_second %v is impossible", l.Moved, l.Wrong, l.Target)
	case !(l.Flight >= 0 && l.Flight <= mostClients):
		return impossible("in_flight", l.Flight)
	case !(l.Queued >= 0 && l.Queued <= mostClients):
		return impossible("queued", l.Queued)
	case min(l.Allowed, l.Started, l.Done, l.Failed) < 0:
		return impossible("number of copies", min(l.Allowed, l.Started, l.Done, l.Failed))
	}
	return nil
}
