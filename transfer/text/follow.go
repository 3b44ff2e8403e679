package text

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"weir/internal/say"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/transfer"
	"weir/transfer/client"
)

// Follow shows the progress of a request on w until the request has ended, and reports changes
// meanwhile, including a loss of the connection to the coordinator.
func Follow(ctx context.Context, co *client.Client, id int64, w io.Writer) (transfer.Request, error) {
	var mu sync.Mutex
	var last client.Progress
	to := screen.New(w)
	defer to.Animate(func(columns int) []string {
		mu.Lock()
		defer mu.Unlock()
		return progressRows(&last, columns, to.Look())
	})()
	return co.Follow(ctx, id, to.Moves(), func(p client.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if text := change(&last, &p); text != "" {
			_, _ = io.WriteString(w, text) // a lost terminal does not end the waiting
		}
		last = p
	})
}

// change describes the changes since the last poll, or returns "" if there are no changes.
func change(before, now *client.Progress) (text string) {
	switch {
	case now.Err != nil && before.Err == nil:
		return fmt.Sprintf("weir: the coordinator does not answer: still waiting (%v)\n", say.Plain(now.Err.Error()))
	case now.Err == nil && before.Err != nil:
		text = "weir: the coordinator answers again\n"
	}
	if r := &now.Request; r.Status != before.Request.Status && before.Request.ID != 0 && !r.Status.Ended() {
		text += fmt.Sprintf("request %d is %s: %s, %s\n", r.ID, r.Status, files(r.Count.Files), bytes(r.Count.Bytes))
	}
	return text
}

// progressRows returns the rows that show the progress of a request.
func progressRows(p *client.Progress, columns int, look screen.Look) []string {
	r, c := &p.Request, &p.Request.Count
	if r.ID == 0 {
		return nil
	}
	row := screen.Progress{Where: fmt.Sprintf("request %d: %s", r.ID, r.Status), Share: screen.Unknown, Left: screen.Unknown, Now: time.Now()}
	if c.Bytes > 0 {
		row.Share = float64(p.Bytes) / float64(c.Bytes)
	} else if c.Files > 0 {
		row.Share = float64(c.Done+c.Skipped) / float64(c.Files)
	}
	if p.Speed > 0 {
		row.Left = time.Duration(float64(c.Bytes-p.Bytes) / p.Speed * float64(time.Second))
	}
	text := fmt.Sprintf(" %d of %s, %s of %s, %s/s; %d moving, %d waiting", c.Done+c.Skipped, files(c.Files),
		bytes(p.Bytes), bytes(c.Bytes), unit.Bytes(p.Speed), c.Leased, c.Queued)
	if more := counts([]stateCount{{c.NoSource, "without a source"}, {c.Failed, "failed"}, {c.Cancelled, "cancelled"}}); more != "" {
		text += ", " + more
	}
	if p.Err != nil {
		text += " (the coordinator does not answer)"
	}
	return []string{row.Row(columns, look), text[:min(len(text), columns)]}
}
