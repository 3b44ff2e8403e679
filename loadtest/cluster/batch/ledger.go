package batch

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/internal/say"
)

// A Ledger records the states of the workers of a submission, for Systems. It may be used by many
// goroutines at once.
type Ledger struct {
	mu    sync.Mutex
	last  []Change // of each worker
	all   []Change
	news  chan struct{} // closed at the next change
	ended bool          // there are no further changes
}

// NewLedger returns the ledger of count workers that are queued; their jobs and hosts are unknown.
func NewLedger(count int) *Ledger {
	l := &Ledger{last: make([]Change, count), news: make(chan struct{})}
	for i := range l.last {
		l.last[i] = Change{Worker: i, State: Queued, Exit: -1}
	}
	return l
}

// Note records c if it is a change: a worker that has ended stays so, and known states are not
// reported again. An empty host or job leaves the recorded value unchanged; an empty time means
// now.
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
	if c.Time.IsZero() {
		c.Time = time.Now()
	}
	same := c.State == was.State && c.Host == was.Host && c.Reason == was.Reason && c.JobID == was.JobID
	if was.State.Over() || same && !was.Time.IsZero() {
		return
	}
	*was = c
	l.all = append(l.all, c)
	l.wake()
}

// Last returns the latest change of a worker.
func (l *Ledger) Last(worker int) Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last[worker]
}

// End ends the ledger: Follow returns after the last change.
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

// Follow calls tell with all changes from the first on, until End was called or ctx is over.
func (l *Ledger) Follow(ctx context.Context, tell func(Change)) error {
	for seen := 0; ; {
		l.mu.Lock()
		fresh, news, ended := slices.Clone(l.all[seen:]), l.news, l.ended
		l.mu.Unlock()
		for i := range fresh {
			tell(fresh[i])
		}
		seen += len(fresh)
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

// FollowWatched follows the ledger while watch, which notes changes, runs beside it. It ends with
// an error if watch fails.
func (l *Ledger) FollowWatched(ctx context.Context, tell func(Change), watch func(ctx context.Context) error) error {
	both, stop := context.WithCancel(ctx)
	var failed error
	var wait sync.WaitGroup
	wait.Go(func() {
		if failed = watch(both); failed != nil {
			stop()
		}
	})
	err := l.Follow(both, tell)
	stop()
	wait.Wait()
	if ctx.Err() == nil && failed != nil && err != nil {
		return failed
	}
	return err
}

// FollowAsked follows the ledger while ask, which notes changes, is called once a second, and less
// often the more workers there are, because the load on the batch system grows with them. It ends
// when over returns true, which is called after each ask, or when ctx ends. If ask fails, as it may
// while the system is busy, it is called again for five minutes.
func (l *Ledger) FollowAsked(ctx context.Context, tell func(Change), ask func(context.Context) error, over func() bool) error {
	return l.FollowWatched(ctx, tell, func(ctx context.Context) error {
		tick := time.NewTicker(time.Second + time.Duration(len(l.last))*5*time.Millisecond)
		defer tick.Stop()
		for silent := time.Now(); ; {
			switch err := ask(ctx); {
			case err == nil:
				silent = time.Now()
			case time.Since(silent) > 5*time.Minute:
				return err
			}
			if over() {
				return nil
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// Counts implements Job.
func (l *Ledger) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	var c Counts
	type key struct {
		State
		reason string
	}
	why := map[key][]int{} // workers by their state and its reason
	var order []key
	for i := range l.last {
		w := &l.last[i]
		*c.of(w.State)++
		if w.State == Running || w.State == Ended {
			continue
		}
		k := key{w.State, w.Reason}
		if why[k] == nil {
			order = append(order, k)
		}
		why[k] = append(why[k], i)
	}
	for _, k := range order {
		c.Away = append(c.Away, sentence(why[k], k.State, k.reason))
	}
	return c
}

func (c *Counts) of(s State) *int {
	return map[State]*int{Queued: &c.Queued, Running: &c.Running, Held: &c.Held, Ended: &c.Ended, Removed: &c.Removed, Failed: &c.Failed}[s]
}

// sentence describes the workers in a state, with the reason.
func sentence(workers []int, state State, reason string) string {
	text, many := "worker "+strconv.Itoa(workers[0]), 0
	if n := len(workers); n > 1 {
		text, many = fmt.Sprintf("%s (%s)", say.Plural(n, "worker"), numbers(workers)), 1
	}
	text += map[State][2]string{
		Queued: {" is queued", " are queued"}, Held: {" is held", " are held"}, Failed: {" failed", " failed"},
		Removed: {" was removed", " were removed"},
	}[state][many]
	if reason != "" {
		text += ": " + reason
	}
	return text
}

// numbers lists workers; consecutive numbers become a range: 0-3, 7.
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
