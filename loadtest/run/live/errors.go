package live

import (
	"fmt"

	"weir/internal/say"
	"weir/loadtest/measure"
	"weir/storage"
)

// mostErrors is the number of different errors that are remembered.
const mostErrors = 1000

// errorLines finds the errors that have a line already. Each step has the first errors of each
// class, and most of them are the same as in the step before.
type errorLines struct {
	shown  map[string]bool
	again  [storage.Classes]bool  // classes of errors that were not shown again
	failed [storage.Classes]int64 // operations
}

// isNew reports whether an error needs a line.
func (l *errorLines) isNew(e *measure.Event) bool {
	key := e.Class.String() + ": " + e.Text
	if l.shown[key] {
		l.again[e.Class] = true
		return false
	}
	if l.shown == nil {
		l.shown = map[string]bool{}
	}
	if len(l.shown) < mostErrors {
		l.shown[key] = true
	}
	return true
}

// add counts the failures and wrong payloads of an interval.
func (l *errorLines) add(i *measure.Interval) {
	for class := range storage.Classes {
		l.failed[class] += i.BadOf(class)
	}
}

// repeated returns a line for each class with errors that were not shown again, and begins anew.
func (l *errorLines) repeated() (lines []string) {
	for class, again := range l.again {
		if again {
			lines = append(lines, fmt.Sprintf("%v: %s failed in all; repeated errors are shown once", storage.Class(class),
				say.Plural(int(l.failed[class]), "operation")))
		}
	}
	*l = errorLines{shown: l.shown}
	return lines
}
