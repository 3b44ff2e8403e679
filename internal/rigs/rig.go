package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A rig is a situation whose truth is known.
type rig struct {
	name      string
	situation string   // what happens to the run, for people
	truth     string   // what is so by construction, for people
	needs     []string // programs
	short     bool     // played by the tests
	play      func(ctx context.Context, s *stage) error
}

// rigs are all of them, in the order of the page.
func rigs() []rig {
	return slices.Concat(errorRigs(), outageRigs(), stallRigs(), limitRigs(), moreLimitRigs(), generatorRigs(), noiseRigs(), contentRigs(), serverRigs(), driftRigs(), backendRigs(), commandRigs())
}

// A result is what became of a rig.
type result struct {
	*rig
	naive   []string // what other tools, or totals alone, report
	says    []string // what weir says
	missed  []string // expectations that do not hold
	skipped string   // why it could not be played here
	seconds float64
}

// caught tells whether weir was right in all that was expected of it.
func (r *result) caught() bool { return r.skipped == "" && len(r.missed) == 0 }

// longest is what a rig may take.
const longest = 100 * time.Second

// errSkip says that a rig cannot be played on this machine.
var errSkip = errors.New("cannot be played here")

// play plays one rig and tells log what came of it.
func play(ctx context.Context, r *rig, o options, log io.Writer) result {
	res := result{rig: r}
	if why := lacks(r.needs); why != "" {
		res.skipped = why
		_, _ = fmt.Fprintf(log, "skipped  %s: %s\n", r.name, why)
		return res
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	begin := time.Now()
	s, err := newStage(o)
	if err == nil {
		err = r.play(ctx, s)
		if errors.Is(err, errSkip) {
			res.skipped, err = err.Error(), nil
		}
		res.naive, res.says, res.missed = s.naive, s.says(), s.missed
		if err == nil && len(s.missed) > 0 && o.keep != "" {
			err = s.save(filepath.Join(o.keep, r.name))
		}
		err = errors.Join(err, s.close())
	}
	if err != nil {
		res.missed = append(res.missed, "the rig itself failed: "+err.Error())
	}
	res.seconds = time.Since(begin).Seconds()
	state := "caught "
	switch {
	case res.skipped != "":
		state = "skipped"
	case !res.caught():
		state = "MISSED "
	}
	_, _ = fmt.Fprintf(log, "%s  %s (%.0f s)\n", state, r.name, res.seconds)
	for _, m := range res.missed {
		_, _ = fmt.Fprintf(log, "           %s\n", m)
	}
	if !res.caught() && res.skipped == "" {
		_, _ = fmt.Fprintf(log, "           weir says: %s\n", strings.Join(res.says, "; "))
	}
	return res
}
