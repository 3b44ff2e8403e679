package agent

import (
	"context"
	"runtime"
	"strings"
	"time"

	"weir/transfer"
	"weir/transfer/catalog/importer"
)

// Limits of a part of a scan's results, and of the parts that wait to be acknowledged.
const (
	partFiles = 1000
	partTime  = time.Second
	mostParts = 8
	mostWrong = 100 // files of one scan that cannot be read
)

// beginScan starts a scan, unless it runs already.
func (a *Agent) beginScan(ctx context.Context, s transfer.Scan) {
	mine, cancel := context.WithCancel(ctx)
	if !a.activity.beginScan(s.ID, cancel) {
		cancel()
		return
	}
	a.runs.Go(func() {
		defer cancel()
		a.scan(mine, s)
	})
}

// scan reports the files in a folder of the site.
func (a *Agent) scan(ctx context.Context, s transfer.Scan) {
	t := &scanReporter{scan: s.ID, activity: a.activity, last: time.Now()}
	end := transfer.ScanResult{Scan: s.ID, Done: true}
	o := importer.Options{
		Dataset: "/scan",                         // the coordinator replaces it
		Workers: max(1, runtime.GOMAXPROCS(0)/2), // copies continue meanwhile
		Wrong:   func(name string, err error) { t.wrong(ctx, name, a.plainError(err)) },
	}
	for e, err := range importer.Folder(ctx, a.root, s.Path, o) {
		if err != nil {
			end.Problem = a.plainError(err)
			break
		}
		t.file(ctx, transfer.ScannedFile{Path: strings.TrimPrefix(e.Name, "/scan/"), Size: e.Size, Adler: e.Adler})
	}
	if ctx.Err() != nil {
		return // it was dropped, or the agent ends: another process scans again
	}
	t.flush(ctx)
	_ = a.activity.foundPart(ctx, end) // fails only with ctx
}

// A scanReporter collects the results of a scan into parts.
type scanReporter struct {
	scan     int64
	activity *activity

	files []transfer.ScannedFile
	last  time.Time
	bad   int
}

// file adds a file.
func (t *scanReporter) file(ctx context.Context, f transfer.ScannedFile) {
	t.files = append(t.files, f)
	if len(t.files) >= partFiles || time.Since(t.last) > partTime {
		t.flush(ctx)
	}
}

// wrong reports on a file that cannot be read.
func (t *scanReporter) wrong(ctx context.Context, name, why string) {
	if t.bad++; t.bad > mostWrong {
		return
	}
	why = strings.ReplaceAll(why, "\"/scan/", "\"") // an internal name
	if !strings.Contains(why, name) {
		why = name + ": " + why
	}
	_ = t.activity.foundPart(ctx, transfer.ScanResult{Scan: t.scan, Problem: why}) // fails only with ctx
}

func (t *scanReporter) flush(ctx context.Context) {
	if len(t.files) > 0 {
		_ = t.activity.foundPart(ctx, transfer.ScanResult{Scan: t.scan, Files: t.files}) // fails only with ctx
	}
	t.files, t.last = nil, time.Now()
}

// foundPart adds results of a scan to the next report. It waits while too many parts are not
// acknowledged.
func (h *activity) foundPart(ctx context.Context, f transfer.ScanResult) error {
	select {
	case h.parts <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.found = append(h.found, f)
	poke(h.urgent)
	return nil
}
