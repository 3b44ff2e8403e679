package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weir/scenario"
)

// partFlags say which part of a plan this machine carries out by itself.
type partFlags struct{ part, begin string }

func (f *partFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.part, "part", "", "only part `NUMBER/OF` of the clients, as in 3/10: other machines do the rest, and weir merge adds them up")
	c.Flags().StringVar(&f.begin, "begin", "", "begin at `TIME` (14:30, 14:30:15, or 2026-03-01T14:30:00Z), to hold steps at the same time as other machines")
}

// of returns the plan that the flags ask for.
func (f *partFlags) of(p *scenario.Plan, now time.Time) (*scenario.Plan, error) {
	if f.begin != "" {
		at, err := beginTime(f.begin, now)
		if err != nil {
			return nil, err
		}
		whole := *p
		whole.BeginAt(at)
		p = &whole
	}
	if f.part == "" {
		return p, nil
	}
	if p.On.Apart {
		return nil, exit{exitUsage, errors.New("--part: with on.apart each worker has a part already: leave one of the two out")}
	}
	number, of, err := scenario.ParsePart(f.part)
	if err == nil {
		p, err = p.Apart(number, of)
	}
	if err != nil {
		return nil, exit{exitUsage, fmt.Errorf("--part: %w", err)}
	}
	return p, nil
}

// beginTime reads a time of the day that is still to come within 12 hours, or a
// time with its day.
func beginTime(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		if at.Before(now) {
			return at, exit{exitUsage, fmt.Errorf("--begin %s: that is over", text)}
		}
		return at, nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		at, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		y, m, d := now.Date()
		at = time.Date(y, m, d, at.Hour(), at.Minute(), at.Second(), 0, now.Location())
		if at.Before(now) {
			at = at.AddDate(0, 0, 1)
		}
		if at.Sub(now) > 12*time.Hour {
			return at, exit{exitUsage, fmt.Errorf("--begin %s: that is over for today (it is %s): write the day, too, as in %s", text, now.Format("15:04:05"), at.Format(time.RFC3339))}
		}
		return at, nil
	}
	return now, exit{exitUsage, fmt.Errorf("--begin %s: write a time of the day, as in 14:30 or 14:30:15, or one with its day, as in %s", text, now.Format(time.RFC3339))}
}
