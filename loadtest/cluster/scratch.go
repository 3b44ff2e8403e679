package cluster

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/engine/scratch"
	"weir/loadtest/measure"
)

// A scratchQuota limits the size of a worker's copies. The controller sends the limit, perhaps
// before the worker has opened the folder for copies.
type scratchQuota struct {
	mu    sync.Mutex
	room  *scratch.Room // nil: no limit, or not open yet
	bytes int64         // limit that the controller has sent, or 0
}

func (q *scratchQuota) set(bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes = bytes
	q.room.Limit(bytes)
}

// open makes the Room of so many bytes, or of the limit that the controller has sent.
func (q *scratchQuota) open(bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.room = scratch.NewRoom(cmp.Or(q.bytes, bytes))
}

// openScratch makes the place for the copies of this worker's staged jobs, and reports it to the
// controller. It returns nil if the plan has no staged jobs.
func (w *worker) openScratch(b *begin) (*scratch.Place, error) {
	place, err := scratch.OpenPlace(b.Plan.Works(), scratch.MostCopies)
	if err != nil || place == nil {
		return nil, err
	}
	w.quota.open(place.Quota())
	about := place.About()
	w.stages.Store(&scratchReport{Scratch: *about, Number: scratch.On(about.Folder).Number})
	err = w.say(report{Scratch: w.stages.Load()})
	for _, text := range append(place.Leftovers(false), place.Warnings(0, nil)...) {
		if err == nil {
			err = w.say(report{Event: &measure.Event{Time: w.clock().UTC(), Kind: measure.EventWarning, Text: text}})
		}
	}
	if err == nil {
		err = place.Refuse(b.Files)
	}
	if err != nil {
		_ = place.Close() // nothing was copied
		return nil, err
	}
	return place, nil
}

// clock returns the run's time.
func (w *worker) clock() time.Time {
	if w.own.Clock != nil {
		return w.own.Clock()
	}
	return time.Now()
}

// scratchDevice returns the block device with this worker's copies, or "".
func (w *worker) scratchDevice() string {
	if s := w.stages.Load(); s != nil {
		return s.Device
	}
	return ""
}

// staged records the folder in which a worker puts copies of files.
func (k *controller) staged(w *remote, r *scratchReport) error {
	w.scratch = *r
	at := &w.scratch.Scratch
	at.Folder, at.Device, at.Filesystem = clean(at.Folder), clean(at.Device), clean(at.Filesystem)
	k.shareQuota(w)
	if at.Device != "" && w.on.boot == k.here.boot {
		k.device.CompareAndSwap(nil, &at.Device)
	}
	on := cmp.Or(at.Device, at.Filesystem, "a disk that is not known")
	return k.event(measure.Event{Kind: measure.EventWorker,
		Text:   fmt.Sprintf("worker %s: its jobs copy files to %s on %s, which has %s free", w.name, at.Folder, on, unit.Bytes(float64(at.Free))),
		Worker: &measure.Worker{Name: w.name, State: measure.Stages, Host: w.about.Host, Job: w.about.Job, Scratch: at}})
}

// quota returns the limit of the copies of all staged jobs on one machine, 0 for no limit.
func (k *controller) quota() (bytes int64) {
	for _, work := range k.Plan.Works() {
		if work.Job != nil {
			bytes = max(bytes, int64(work.Job.Quota))
		}
	}
	return bytes
}

// shareQuota gives each worker of w's machine an equal part of the quota. It is called when a
// worker comes or goes.
func (k *controller) shareQuota(w *remote) {
	quota := k.quota()
	if quota == 0 || k.options.closed {
		return
	}
	var there []*remote
	for _, o := range k.present() {
		if o.on.boot == w.on.boot && o.scratch.Folder != "" {
			there = append(there, o)
		}
	}
	for _, o := range there {
		_ = o.say(order{Quota: max(quota/int64(len(there)), 1)})
	}
}

// crowded warns, once for each disk, if the copies of all clients of its workers do not fit on it.
func (k *controller) crowded() error {
	type disk struct{ boot, number string }
	type load struct {
		clients int
		first   *remote
	}
	loads := map[disk]load{}
	var order []disk
	for _, w := range k.present() {
		if w.scratch.Folder == "" || !w.in {
			continue
		}
		d := disk{w.on.boot, cmp.Or(w.scratch.Number, w.scratch.Folder)}
		l := loads[d]
		if l.first == nil {
			l.first = w
			order = append(order, d)
		}
		l.clients += w.clients
		loads[d] = l
	}
	if len(order) == 0 {
		return nil
	}
	largest, quota := scratch.Largest(k.Files), k.quota()
	for _, d := range order {
		l := loads[d]
		text := scratch.Crowded(l.clients, largest, cmp.Or(l.first.scratch.Free, -1), quota)
		name := cmp.Or(d.boot, l.first.name) + d.number
		if text == "" || k.full[name] {
			continue
		}
		if k.full == nil {
			k.full = map[string]bool{}
		}
		k.full[name] = true
		if err := k.warn(fmt.Sprintf("%s on %s: %s", l.first.scratch.Folder, say.Plain(cmp.Or(l.first.about.Host, "this machine")),
			text)); err != nil {
			return err
		}
	}
	return nil
}

// ScratchDevice returns the block device of this machine with copies of workers' files, or "".
func (w *RemoteWorkers) ScratchDevice() string { return w.server.ScratchDevice() }

// ScratchDevice returns the block device of this machine with copies of workers' files, or "".
func (d *Server) ScratchDevice() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run == nil {
		return ""
	}
	if device := d.run.controller.device.Load(); device != nil {
		return *device
	}
	return ""
}
