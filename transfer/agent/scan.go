package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"
	"time"

	"weir/internal/adler"
	"weir/transfer"
)

// What scans tell at a time, and how many such parts wait to be acknowledged.
const (
	partFiles  = 1000
	partTime   = time.Second
	mostParts  = 8
	mostWrong  = 100 // files that cannot be read, of one scan
	ownPrefix  = ".weir"
	readAtOnce = 1 << 20
)

var errChanged = errors.New("it changed while it was read")

// beginScan starts a scan, unless it runs already.
func (a *Agent) beginScan(ctx context.Context, s transfer.Scan) {
	mine, cancel := context.WithCancel(ctx)
	if !a.hands.beginScan(s.ID, cancel) {
		cancel()
		return
	}
	a.runs.Go(func() {
		defer cancel()
		a.scan(mine, s)
	})
}

// scan tells what is in a folder of the site.
func (a *Agent) scan(ctx context.Context, s transfer.Scan) {
	t := &teller{scan: s.ID, hands: a.hands, last: time.Now()}
	err := a.walk(ctx, s, t)
	if ctx.Err() != nil {
		return // it was dropped, or we end: another process begins anew
	}
	end := transfer.Found{Scan: s.ID, Done: true}
	if err != nil {
		end.Problem = a.plainError(err)
	}
	t.flush(ctx)
	_ = a.hands.foundPart(ctx, end) // fails only with ctx
}

// walk sums the files below a folder, several at a time.
func (a *Agent) walk(ctx context.Context, s transfer.Scan, t *teller) error {
	top := strings.Trim(s.Path, "/")
	if top == "" {
		top = "."
	}
	if !fs.ValidPath(top) {
		return fmt.Errorf("%q is no path below the site's root: leave out .. and //", s.Path)
	}
	if info, err := a.root.Stat(top); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s is no folder", top)
	}
	names := make(chan string)
	var sums sync.WaitGroup
	for range max(1, runtime.GOMAXPROCS(0)/2) { // copies go on meanwhile
		sums.Go(func() {
			for name := range names {
				f, err := a.sum(ctx, name)
				f.Path = strings.TrimPrefix(name, top+"/")
				t.file(ctx, f, err, a.plainError)
			}
		})
	}
	err := fs.WalkDir(a.root.FS(), top, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == top:
			return err
		case err != nil:
			t.wrong(ctx, name, a.plainError(err))
			return nil
		case name != top && strings.HasPrefix(path.Base(name), ownPrefix):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !a.isFile(name, d):
			return nil
		}
		select {
		case names <- name:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	close(names)
	sums.Wait()
	return err
}

// isFile tells whether a name is a regular file, or a link to one below the root.
func (a *Agent) isFile(name string, d fs.DirEntry) bool {
	if d.Type()&fs.ModeSymlink == 0 {
		return d.Type().IsRegular()
	}
	info, err := a.root.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// sum reads a file of the site.
func (a *Agent) sum(ctx context.Context, name string) (transfer.FoundFile, error) {
	var out transfer.FoundFile
	f, err := a.root.Open(name)
	if err != nil {
		return out, err
	}
	defer f.Close() //nolint:errcheck // only read
	before, err := f.Stat()
	if err != nil {
		return out, err
	}
	if !before.Mode().IsRegular() { // replaced by a pipe since
		return out, errors.New("it is no regular file")
	}
	sum, size, err := sumOf(ctx, f)
	if err != nil {
		return out, err
	}
	after, err := f.Stat()
	if err == nil && (after.Size() != size || !after.ModTime().Equal(before.ModTime())) {
		err = errChanged
	}
	out.Size, out.Adler = size, adler.Text(sum)
	return out, err
}

func sumOf(ctx context.Context, f *os.File) (sum uint32, size int64, err error) {
	sum = 1
	buffer := make([]byte, readAtOnce)
	for {
		if ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
		n, err := f.Read(buffer)
		sum, size = adler.Update(sum, buffer[:n]), size+int64(n)
		if errors.Is(err, io.EOF) {
			return sum, size, nil
		}
		if err != nil {
			return 0, 0, err
		}
	}
}

// A teller gathers what a scan finds into parts.
type teller struct {
	scan  int64
	hands *hands

	mu    sync.Mutex
	files []transfer.FoundFile
	last  time.Time
	bad   int
}

// file adds a file, or says why it cannot be read.
func (t *teller) file(ctx context.Context, f transfer.FoundFile, err error, plain func(error) string) {
	if err != nil {
		t.wrong(ctx, f.Path, plain(err))
		return
	}
	t.mu.Lock()
	t.files = append(t.files, f)
	full := len(t.files) >= partFiles || time.Since(t.last) > partTime
	t.mu.Unlock()
	if full {
		t.flush(ctx)
	}
}

// wrong tells of a file that cannot be read.
func (t *teller) wrong(ctx context.Context, name, why string) {
	t.mu.Lock()
	t.bad++
	bad := t.bad
	t.mu.Unlock()
	if bad > mostWrong || ctx.Err() != nil {
		return
	}
	if !strings.Contains(why, name) {
		why = name + ": " + why
	}
	_ = t.hands.foundPart(ctx, transfer.Found{Scan: t.scan, Problem: why}) // fails only with ctx
}

func (t *teller) flush(ctx context.Context) {
	t.mu.Lock()
	files := t.files
	t.files, t.last = nil, time.Now()
	t.mu.Unlock()
	if len(files) > 0 {
		_ = t.hands.foundPart(ctx, transfer.Found{Scan: t.scan, Files: files}) // fails only with ctx
	}
}

// foundPart adds what a scan has found to what is to be reported. It waits while
// much is not acknowledged.
func (h *hands) foundPart(ctx context.Context, f transfer.Found) error {
	select {
	case h.parts <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.found = append(h.found, f)
	poke(h.tell)
	return nil
}
