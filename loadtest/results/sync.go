package results

import "fmt"

// SyncTransfers returns when all lines of transfers.jsonl that were appended before the call are on
// stable storage. It returns an error if a line could not be written. It is safe for concurrent use,
// also with Transfer.
func (w *Writer) SyncTransfers() error {
	w.opening.Lock()
	l := w.transfers
	w.opening.Unlock()
	if l == nil {
		return nil
	}
	if err := l.written(); err != nil {
		return err
	}
	if err := l.f.Sync(); err != nil {
		return fmt.Errorf("%s: %w", l.f.Name(), err)
	}
	return nil
}

// written waits for the lines that were appended before the call. It returns the error of the first line
// that failed.
func (l *lineFile) written() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for added := l.added; l.ended < added; {
		l.changed.Wait()
	}
	return l.lost
}
