package emulator

import (
	"encoding/json"
	"io"
	"sync"
)

// A jsonWriter writes values as JSON lines, by which a run, its keeper and its
// mover talk to each other. It may be used by several goroutines.
type jsonWriter struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func newJSONWriter(w io.Writer) *jsonWriter { return &jsonWriter{enc: json.NewEncoder(w)} }

func (w *jsonWriter) say(v any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.enc.Encode(v)
}
