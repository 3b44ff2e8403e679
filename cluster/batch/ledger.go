package batch

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"weir/internal/say"
)

// A Ledger keeps what is known of the workers of a submission, for Systems. It may
// be used by many goroutines at once.
type Ledger struct {
	mu    sync.Mutex
	last  []Change // of each worker
	all   []Change
	news  chan struct{} // closed when something comes
	ended bool          // nothing more comes
}

// NewLedger returns the ledger of count workers of which nothing is known but that they are queued.
func NewLedger(count int) *Ledger {
	l := &Ledger{last: make([]Change, count), news: make(chan struct{})}
	for i := range l.last {
		l.last[i] = Change{Worker: i, State: Queued, Exit: -1}
	}
	return l
}

// Note takes a change if it is one: who is over stays so, and what is known is not
// told again. What c does not say of host and job is as it was.
func (l *Ledger) Note(c Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Worker < 0 || c.Worker >= len(l.last) {
		return
	}
	was := &l.last[c.Worker]
	if c.Host == "" && c.State != Queued {
		c.Host = was.Host
	}
	if c.JobID == "" {
		c.JobID = was.JobID
	}
	if !c.State.Over() {
		c.Exit = -1
	}
	same := c.State == was.State && c.Host == was.Host && c.Reason == was.Reason && c.JobID == was.JobID
	if was.State.Over() || same && !was.Time.IsZero() {
		return
	}
	*was = c
	l.all = append(l.all, c)
	l.wake()
}

// Last returns what is known of a worker.
func (l *Ledger) Last(worker int) Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last[worker]
}

// End says that nothing more comes: Follow returns when it has told all.
func (l *Ledger) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.wake()
}

func (l *Ledger) wake() {
	close(l.news)
	l.news = make(chan struct{})
}

// Follow tells all changes from the first on, until End was called or ctx is over.
func (l *Ledger) Follow(ctx context.Context, tell func(Change)) error {
	for told := 0; ; {
		l.mu.Lock()
		fresh, news, ended := slices.Clone(l.all[told:]), l.news, l.ended
		l.mu.Unlock()
		for i := range fresh {
			tell(fresh[i])
		}
		told += len(fresh)
		if len(fresh) > 0 {
			continue
		}
		if ended {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Counts implements Job.
func (l *Ledger) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	var c Counts
	why := map[string][]int{} // workers by what is said of them
	var order []string
	for i := range l.last {
		w := &l.last[i]
		*c.of(w.State)++
		if w.State == Running || w.State == Ended {
			continue
		}
		key := string(w.State) + "\x00" + w.Reason
		if why[key] == nil {
			order = append(order, key)
		}
		why[key] = append(why[key], i)
	}
	for _, key := range order {
		state, reason, _ := strings.Cut(key, "\x00")
		c.Away = append(c.Away, sentence(why[key], state, reason))
	}
	return c
}

func (c *Counts) of(s State) *int {
	switch s {
	case Running:
		return &c.Running
	case Held:
		return &c.Held
	case Ended:
		return &c.Ended
	case Removed:
		return &c.Removed
	case Failed:
		return &c.Failed
	default:
		return &c.Queued
	}
}

// sentence says of some workers what they are, and why.
func sentence(workers []int, state, reason string) string {
	verb := map[State]string{Queued: " queued", Held: " held", Failed: " failed", Removed: " removed"}[State(state)]
	who := "worker " + strconv.Itoa(workers[0])
	be, were := " is", " was"
	if n := len(workers); n > 1 {
		who, be, were = fmt.Sprintf("%s (%s)", say.Plural(n, "worker"), numbers(workers)), " are", " were"
	}
	switch State(state) {
	case Failed:
		be = ""
	case Removed:
		be = were
	}
	if reason != "" {
		reason = ": " + reason
	}
	return who + be + verb + reason
}

// numbers lists workers, runs of them shortly: 0-3, 7.
func numbers(workers []int) string {
	var b []string
	for i := 0; i < len(workers); {
		j := i
		for j+1 < len(workers) && workers[j+1] == workers[j]+1 {
			j++
		}
		word := strconv.Itoa(workers[i])
		if j > i {
			word += "-" + strconv.Itoa(workers[j])
		}
		if b = append(b, word); len(b) == 6 && j+1 < len(workers) {
			return strings.Join(b, ", ") + " ..."
		}
		i = j + 1
	}
	return strings.Join(b, ", ")
}
