package diagnose

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/slow"
	"weir/internal/unit"
	"weir/storage"
)

// A CopyReport is the result of the diagnosis of a third-party copy: a copy between the two ends, and the diagnoses
// of reading from and writing to them.
type CopyReport struct {
	Target  string       `json:"target"`
	Verdict slow.Verdict `json:"verdict"`
	End     string       `json:"end,omitempty"` // "source" or "destination": the end that the verdict is about
	Copy    slow.Flow    `json:"copy"`
	Source  *Report      `json:"source"`
	Dest    *Report      `json:"destination"`
}

// Between diagnoses copies of the file from.URL into the folder to.URL, which the service of to fetches, or the
// service of from sends if push is set. The two services need the same driver. Each end is diagnosed from here, with
// half of the budgets; the copy is removed again.
func Between(ctx context.Context, from, to Options, push bool) (*CopyReport, error) {
	if from.Driver.Name != to.Driver.Name {
		return nil, fmt.Errorf("%s and %s: no service copies between two protocols", from.URL.Scheme, to.URL.Scheme)
	}
	for _, o := range []*Options{&from, &to} {
		o.Bytes, o.Time = o.bytes()/2, o.time()/2
	}
	to.Write = true
	r := &CopyReport{Target: from.URL.Redacted() + " to " + to.URL.Redacted()}
	var err error
	if r.Source, err = Run(ctx, from); err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	if r.Dest, err = Run(ctx, to); err != nil {
		return nil, fmt.Errorf("destination: %w", err)
	}
	if ctx.Err() == nil {
		if r.Copy, err = copied(ctx, from, to, push, int(r.Source.Seen.Size)); err != nil {
			return nil, fmt.Errorf("copy: %w", err)
		}
	}
	r.Verdict, r.End = slow.JudgeCopy(&r.Copy, &r.Source.Seen, &r.Dest.Seen)
	return r, nil
}

// copied has one service copy the file of the given size once, at most for the time of the budget.
func copied(ctx context.Context, from, to Options, push bool, size int) (of slow.Flow, err error) {
	from.Write = false
	source := &diagnosis{Options: from}
	base := source.base()
	dest := &diagnosis{Options: to}
	target := dest.base()
	origin := storage.Origin{URL: &base, Cred: from.Cred, Push: push}
	dest.service, err = to.Driver.Open(ctx, storage.Target{URL: &target, Cred: to.Cred, Origin: &origin})
	if err != nil {
		return of, err
	}
	defer func() { err = errors.Join(err, dest.service.Close()) }()
	if err := dest.mkdir(ctx); err != nil {
		return of, err
	}
	defer func() { err = errors.Join(err, dest.clean(context.WithoutCancel(ctx))) }()
	c := dest.service.Client()
	defer c.Close()
	timed, cancel := context.WithTimeout(ctx, to.time())
	defer cancel()
	moved := 0
	begun := time.Now()
	p := &points{begun: begun, moved: func(n int) { moved += n }}
	_, err = c.Do(timed, &storage.Op{Kind: storage.Copy, Source: source.file, Path: dest.newFile()}, p)
	took := time.Since(begun).Seconds()
	if err == nil {
		moved = size
	}
	if err != nil && (timed.Err() == nil || moved == 0) {
		return of, err
	}
	return slow.Flow{Streams: 1, Bytes: float64(moved), Seconds: took, Rate: float64(moved) / took}, nil
}

// describe compares the rate of the copy with the rates of this host.
func (r *CopyReport) describe() string {
	return fmt.Sprintf("The copy: %s in %s, %s. From here the source gives %s and the destination takes %s in one stream.",
		unit.Bytes(r.Copy.Bytes), unit.Seconds(r.Copy.Seconds), unit.Bits(r.Copy.Rate), unit.Bits(r.Source.rate()), unit.Bits(r.Dest.rate()))
}
