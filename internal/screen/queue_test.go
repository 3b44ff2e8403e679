package screen

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
)

// All data is written in its order, and no caller waits for a hanging reader except the caller that
// closes the queue.
func TestQueue(t *testing.T) {
	read, write := io.Pipe() // there is no reader yet
	q := NewQueue(write)
	var want strings.Builder
	for i := range 1000 {
		_, _ = fmt.Fprintf(&want, "line %d\n", i)
		if _, err := fmt.Fprintf(q, "line %d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	var got bytes.Buffer
	var reader sync.WaitGroup
	reader.Go(func() { _, _ = io.Copy(&got, read) })
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	_ = write.Close()
	reader.Wait()
	if got.String() != want.String() {
		t.Errorf("%d bytes, want %d", got.Len(), want.Len())
	}
	if _, err := q.Write([]byte("late")); err == nil {
		t.Error("a closed queue takes more")
	}
	if Under(NewQueue(New(&got))) != &got {
		t.Error("what is under it is not found")
	}
}

// An error is returned at the end, and no data is written after it.
func TestQueueError(t *testing.T) {
	read, write := io.Pipe()
	q := NewQueue(write)
	_ = read.CloseWithError(errors.New("gone"))
	_, _ = q.Write([]byte("a"))
	if err := q.Close(); err == nil || err.Error() != "gone" {
		t.Errorf("%v", err)
	}
	if _, err := q.Write(bytes.Repeat([]byte("b"), maxWaiting+1)); err == nil {
		t.Error("it takes more than it may keep")
	}
}
