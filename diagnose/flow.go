package diagnose

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/slow"
	"weir/internal/unit"
	"weir/storage"
)

const (
	flowTime  = 4 * time.Second // of a flow that reads
	writeTime = 8 * time.Second // of a flow that writes, to the answer of the server
	writeFor  = 1.5             // s, duration of a write of one stream
	flowShare = 10              // of the budget of bytes, for one flow
	warmUp    = 0.25            // share of a flow's time that its rate leaves out
	leastFlow = 256 << 10       // bytes
)

// A flow is a flow in progress.
type flow struct {
	begun time.Time
	moved atomic.Int64
	first atomic.Int64 // ns after begun, of the first payload
	bins  []bin
}

// count counts payload.
func (f *flow) count(n int) {
	if f.moved.Add(int64(n)) == int64(n) {
		f.first.Store(int64(time.Since(f.begun)))
	}
}

// A bin is the payload that had moved at a time.
type bin struct {
	at    time.Duration
	moved int64
}

// limit returns the payload of a flow in bytes.
func (d *diagnosis) limit() int64 { return max(d.bytes()/flowShare, leastFlow) }

// run carries out ops at the same time, each with another client, and measures their payload. load is
// called meanwhile, unless it is nil.
func (d *diagnosis) run(ctx context.Context, ops []storage.Op, load func(context.Context)) (slow.Flow, error) {
	most := flowTime
	if d.Write {
		most = writeTime
	}
	clients := make([]storage.Client, len(ops))
	for i := range clients {
		clients[i] = d.service.Client()
		defer clients[i].Close()
	}
	d.connect(ctx, clients)
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	f := &flow{begun: time.Now()}
	errs := make([]error, len(ops))
	var moving, watching sync.WaitGroup
	done := make(chan struct{})
	watching.Go(func() { d.watch.follow(f, d.pause(), len(ops), done) })
	if load != nil {
		watching.Go(func() { load(ctx) })
	}
	for i := range ops {
		moving.Go(func() {
			p := &points{begun: f.begun, moved: f.count}
			_, errs[i] = clients[i].Do(ctx, &ops[i], p)
		})
	}
	moving.Wait()
	took := time.Since(f.begun)
	close(done)
	over := ctx.Err() != nil
	cancel()
	watching.Wait()
	f.bins = append(f.bins, bin{took, f.moved.Load()})
	d.report.Spent.Bytes += f.moved.Load()
	d.report.Spent.Requests += len(ops)
	err := errors.Join(errs...)
	if over && f.moved.Load() > 0 {
		err = nil
	}
	r := f.result(len(ops), d.watch)
	if d.Write { // buffers take the first part at once: the whole counts
		r.Rate = r.Bytes / r.Seconds
	}
	return r, err
}

// connect opens the sessions of clients, whose time is no part of a flow. A session that cannot be opened fails later.
func (d *diagnosis) connect(ctx context.Context, clients []storage.Client) {
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() { _ = d.stat(ctx, c) })
	}
	all.Wait()
	d.report.Spent.Requests += len(clients)
}

// known returns the path of a file that exists.
func (d *diagnosis) known() string {
	if d.Write && len(d.made) > 0 {
		return d.made[0]
	}
	return d.file
}

// pause returns the time between two samples: an eighth of the round trip.
func (d *diagnosis) pause() time.Duration {
	return min(max(time.Duration(d.seen.Idle.Connect/8*float64(time.Second)), 2*time.Millisecond), 50*time.Millisecond)
}

// result returns the measurements of a flow at its end.
func (f *flow) result(streams int, w *watch) slow.Flow {
	first := time.Duration(f.first.Load())
	last := f.bins[len(f.bins)-1]
	took := max(last.at-first, time.Microsecond)
	r := slow.Flow{Streams: streams, Bytes: float64(last.moved), Seconds: took.Seconds()}
	from := bin{at: first}
	var rates []float64
	step := max(took/20, 100*time.Millisecond)
	mark := from
	for _, b := range f.bins {
		if b.at-first < time.Duration(warmUp*float64(took)) {
			if b.at > first {
				from, mark = b, b
			}
			continue
		}
		if b.at-mark.at >= step {
			rates = append(rates, float64(b.moved-mark.moved)/(b.at-mark.at).Seconds())
			mark = b
		}
	}
	if last.moved == from.moved { // all came at once
		from = bin{at: first}
	}
	r.Rate = float64(last.moved-from.moved) / max(last.at-from.at, time.Microsecond).Seconds()
	if slices.Sort(rates); len(rates) > 3 && rates[len(rates)/2] > 0 {
		r.Spread = (rates[len(rates)*3/4] - rates[len(rates)/4]) / rates[len(rates)/2]
	}
	r.Wire, r.Round = w.wire(), w.round()
	return r
}

// fresh returns operations on ranges that were not read before, or writes.
func (d *diagnosis) fresh(n int) []storage.Op {
	ops := make([]storage.Op, n)
	if d.Write {
		each := d.limit() / int64(n)
		if rate := d.rate(); rate > 0 {
			each = min(each, max(int64(rate*writeFor), leastFlow))
		}
		for i := range ops {
			ops[i] = storage.Op{Kind: storage.Write, Path: d.newFile(), Size: each, Seed: uint64(len(d.made))}
		}
		return ops
	}
	whole := int64(d.seen.Size)
	length := min(d.limit(), max(whole/8, leastFlow), whole) // two of these
	if n > 1 {
		length = min(d.limit(), max(whole/4, leastFlow), whole) / int64(n) // and three of these are the file
	}
	for i := range ops {
		if d.next+length > whole {
			d.next = 0
		}
		ops[i] = storage.Op{Kind: storage.Read, Path: d.file, Size: -1, Ranges: []storage.Range{{Offset: d.next, Length: length}}}
		d.next += length
	}
	return ops
}

// oneStream moves fresh payload in one stream. A write is repeated with more until its server needs a second for it.
func (d *diagnosis) oneStream(ctx context.Context) (string, error) {
	f, ops, err := d.single(ctx)
	for d.Write && err == nil && f.Seconds < 1 && 2*f.Bytes < float64(d.limit()) && ctx.Err() == nil {
		d.seen.Fresh = []slow.Flow{f}
		f, ops, err = d.single(ctx)
	}
	d.seen.Fresh = d.seen.Fresh[:len(d.seen.Again)] // without the writes that were too short
	if d.Write && d.seen.Size == 0 {
		d.seen.Size = float64(d.limit())
	}
	if errors.Is(err, storage.ErrScratch) {
		d.seen.Host.Full = true
	}
	if err != nil || f.Bytes == 0 {
		return d.noPayload(ctx, err)
	}
	if len(ops[0].Ranges) > 0 {
		d.last = ops[0]
		d.last.Ranges = []storage.Range{{Offset: ops[0].Ranges[0].Offset, Length: int64(f.Bytes)}}
	}
	d.seen.Fresh = append(d.seen.Fresh, f)
	return describe(&f), nil
}

// single moves fresh payload in one stream and measures this machine meanwhile.
func (d *diagnosis) single(ctx context.Context) (slow.Flow, []storage.Op, error) {
	ops := d.fresh(1)
	d.watch.hostBegin()
	f, err := d.run(ctx, ops, nil)
	var there *slow.Server
	if d.seen.Host, there = d.watch.hostEnd(d.seen.Host); there != nil {
		d.seen.Server = there
	}
	return f, ops, err
}

// noPayload distinguishes services that send nothing from services of which only small packets arrive.
func (d *diagnosis) noPayload(ctx context.Context, err error) (string, error) {
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return "", err
	}
	d.seen.Stuck = &slow.Stuck{}
	c := d.service.Client()
	defer c.Close()
	if _, err := d.request(ctx, c); err == nil {
		d.seen.Stuck.Requests = true
	}
	if d.Write {
		return "nothing arrives there", nil
	}
	small := storage.Op{Kind: storage.Read, Path: d.file, Size: -1, Ranges: []storage.Range{{Length: 200}}, Timeout: silence}
	if _, err := c.Do(ctx, &small, storage.NoProgress{}); err == nil {
		d.seen.Stuck.Small = true
	}
	return "no payload arrives", nil
}

// sameAgain reads the range of the last stream once more.
func (d *diagnosis) sameAgain(ctx context.Context) (string, error) {
	f, err := d.run(ctx, []storage.Op{d.last}, nil)
	if err != nil {
		return "", err
	}
	d.seen.Again = append(d.seen.Again, f)
	return describe(&f), nil
}

// streams moves payload in n streams; the largest number has requests beside it.
func (d *diagnosis) streams(ctx context.Context, n int) (string, error) {
	var busy slow.Latency
	f, err := d.run(ctx, d.fresh(n), func(ctx context.Context) {
		time.Sleep(flowTime / 16) // the queues fill
		busy, _ = d.latencies(ctx, answers, 20*time.Millisecond)
	})
	if err != nil {
		return "", err
	}
	if busy.Connect > 0 {
		d.seen.Busy = busy
	}
	d.seen.Many = append(d.seen.Many, f)
	text := describe(&f)
	if busy.Request > 0 {
		text += fmt.Sprintf("; meanwhile %s for a request, %s for a connect", unit.Seconds(busy.Request), unit.Seconds(busy.Connect))
	}
	return text, nil
}

// describe describes a flow.
func describe(f *slow.Flow) string {
	text := fmt.Sprintf("%s in %s: %s", unit.Bytes(f.Bytes), unit.Seconds(f.Seconds), unit.Bits(f.Rate))
	if w := &f.Wire; w.Measured {
		text += fmt.Sprintf("; round trip %s, %s lost", unit.Seconds(w.MinRTT), unit.Percent(w.Lost))
	}
	return text
}

// newFile returns the path of a new file in the folder of the diagnosis.
func (d *diagnosis) newFile() string {
	d.made = append(d.made, path.Join(d.folder, fmt.Sprintf("f%d", len(d.made))))
	return d.made[len(d.made)-1]
}

// clean removes the files and the folder of the diagnosis.
func (d *diagnosis) clean(ctx context.Context) error {
	c := d.service.Client()
	defer c.Close()
	var errs []error
	for _, f := range d.made {
		if _, err := c.Do(ctx, &storage.Op{Kind: storage.Remove, Path: f, Timeout: silence},
			storage.NoProgress{}); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	op := storage.Op{Kind: storage.Remove, Path: d.folder, Folder: true, Timeout: silence}
	_, err := c.Do(ctx, &op, storage.NoProgress{})
	return errors.Join(append(errs, err)...)
}
