package tpc

import (
	"context"
	"sync"
)

// Kinds lets requests for a checksum of a file wait while another kind is requested of the same
// file: XRootD 5, which computes a checksum at that moment, responds with its value, and over HTTP
// under the wrong name. The zero value is ready, for many goroutines.
type Kinds struct {
	mu    sync.Mutex
	files map[string]*kindsOf
}

// kindsOf are the requests for one file.
type kindsOf struct {
	kind string
	out  int
	free chan struct{} // closed when out is 0 again
}

// Enter waits until checksums of the kind may be requested of the file. The caller calls leave after the answer. The error is ctx's.
func (k *Kinds) Enter(ctx context.Context, file, kind string) (leave func(), err error) {
	for {
		k.mu.Lock()
		f := k.files[file]
		if f == nil {
			f = &kindsOf{kind: kind, free: make(chan struct{})}
			if k.files == nil {
				k.files = map[string]*kindsOf{}
			}
			k.files[file] = f
		}
		if f.kind == kind {
			f.out++
			k.mu.Unlock()
			return func() { k.leave(file, f) }, nil
		}
		k.mu.Unlock()
		select {
		case <-f.free:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (k *Kinds) leave(file string, f *kindsOf) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f.out--; f.out == 0 {
		delete(k.files, file)
		close(f.free)
	}
}
