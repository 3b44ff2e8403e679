package screen

import (
	"os"
	"time"
)

// Rows that move are drawn anew so often.
const every = 250 * time.Millisecond

// Animate shows rows that move until stop is called, which removes them and
// returns when nothing is drawn any more. draw is given the columns that there
// are; it is called four times a second and when the terminal changes, by one
// goroutine, and must not write to the screen. Nothing is drawn while the
// process is in the background of its terminal, and never where nothing moves.
func (s *Screen) Animate(draw func(columns int) []string) (stop func()) {
	if s.term == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	changes, release := changed()
	go func() {
		defer close(ended)
		defer release()
		s.animate(draw, changes, done)
	}()
	return func() {
		close(done)
		<-ended
	}
}

func (s *Screen) animate(draw func(columns int) []string, changes <-chan os.Signal, done <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if s.front() {
			s.show(draw(s.Columns()))
		} else {
			s.forget()
		}
		select {
		case <-tick.C:
		case change := <-changes:
			if resumed(change) { // the shell has told that we were stopped
				s.forget()
			}
		case <-done:
			s.show(nil)
			return
		}
	}
}
