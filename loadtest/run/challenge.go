package run

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/conduct"
	"weir/loadtest/challenge/control"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/direct"
	"weir/loadtest/challenge/inject/fts"
	"weir/loadtest/challenge/inject/rucio"
	"weir/loadtest/challenge/sites"
	"weir/loadtest/results"
	"weir/monitor"
	"weir/storage/all"
)

// A ChallengeConfig configures a data challenge and its output.
type ChallengeConfig struct {
	Challenge *challenge.Challenge // nil: of the run directory, which is resumed
	Dir       string               // run directory: new, or that of the challenge to resume
	Ceiling   unit.Bitrate         // of all links together, if it is lower than that of the challenge; 0: unchanged
	Version   string               // of this program
	Console   Console
	Interrupts
	View    func(dir string, c *challenge.Challenge) ChallengeView
	Watched func(monitor.Sink) // has the samples of emulated lines taken until it is called with nil; may be nil
	Report  func(Result) error // shows the result, also of a challenge that ended early
}

// A ChallengeView shows a challenge while it goes on.
type ChallengeView interface {
	conduct.View
	Start()
	Stop()
}

// ChallengeEffects returns the effects of signals on data challenges.
func ChallengeEffects() Effects {
	return Effects{"stopping: no copy is requested any more, and those in flight are cancelled and removed; interrupt again to leave them",
		"leaving: the files of the challenge stay at the sites"}
}

// Challenge carries out a data challenge, analyzes it and shows the result.
func Challenge(c ChallengeConfig) error {
	resumes := c.Challenge == nil
	if resumes {
		run, err := results.Open(c.Dir)
		if err != nil {
			return err
		}
		if c.Challenge = run.Plan.Challenge; c.Challenge == nil {
			return usage(fmt.Errorf("%s is no data challenge: go on with weir run --resume", c.Dir))
		}
		if _, err := c.Challenge.Credentials(time.Now(), true); err != nil {
			return usage(err)
		}
	} else if err := c.Challenge.Anywhere(); err != nil {
		return err
	}
	if limit := &c.Challenge.Ceiling; c.Ceiling > 0 && (*limit == 0 || *limit > c.Ceiling) {
		*limit = c.Ceiling
	}
	about, err := About(c.Version, false)
	if err != nil {
		return err
	}
	view := &loadedView{ChallengeView: c.View(c.Dir, c.Challenge), dir: c.Dir}
	with := conduct.Config{Plan: conduct.Plan(c.Challenge), Dir: c.Dir, About: about, Finish: c.Finish, Stop: c.Stop, Ending: c.Ending,
		View: view, Watched: c.Watched, Parts: challengeParts(&c.Challenge.Inject)}
	view.Start()
	if resumes {
		err = conduct.Resume(with)
	} else {
		err = conduct.Run(with)
	}
	view.Stop()
	if errors.Is(err, conduct.ErrOver) {
		return usage(err)
	}
	if !view.loaded.Load() || c.Report == nil {
		return err
	}
	result, unread := Analyze(c.Dir, c.Console)
	if result.Findings != nil {
		unread = errors.Join(unread, c.Report(result))
	}
	return errors.Join(err, unread)
}

// loadedView remembers that the profile has begun.
type loadedView struct {
	ChallengeView
	dir    string
	loaded atomic.Bool
}

// Load implements conduct.View.
func (v *loadedView) Load() {
	v.loaded.Store(true)
	linkLatest(v.dir)
	v.ChallengeView.Load()
}

// challengeParts returns the parts that act on real services.
func challengeParts(in *challenge.Injection) conduct.Parts {
	p := conduct.Parts{
		Sites:      func(ctx context.Context, o sites.Options) (conduct.Sites, error) { return sites.Open(ctx, o) },
		Injector:   injectors()[in.By],
		Controller: func(o control.Options) conduct.Controller { return control.New(o) },
		Drivers:    all.Drivers(),
	}
	if scope := in.Scope; in.By == challenge.Rucio {
		p.Path = func(name string) string { return rucio.Path(scope, name) }
	}
	return p
}

// injectors returns the constructors of injectors.
func injectors() map[challenge.Method]func(context.Context, inject.Config) (inject.Injector, error) {
	return map[challenge.Method]func(context.Context, inject.Config) (inject.Injector, error){
		challenge.Direct: direct.New,
		challenge.FTS:    fts.New,
		challenge.Rucio:  rucio.New,
	}
}
