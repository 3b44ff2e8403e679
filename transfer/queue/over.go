package queue

import (
	"context"
	"time"

	"weir/internal/db"
	"weir/transfer"
)

// keptParts is how long what a failed file has left is kept for a Retry.
const keptParts = 24 * time.Hour

// Over returns those temporaries with which nobody will go on: their files are at
// the destination, were cancelled, or failed a day ago. Of files that the queue
// does not know it says nothing.
func (q *Queue) Over(ctx context.Context, parts []transfer.Hold) (over []transfer.Hold, err error) {
	if len(parts) == 0 {
		return nil, nil
	}
	var items []int64
	for _, p := range parts {
		items = append(items, p.Item)
	}
	var all []*file
	err = q.db.Read(ctx, func(tx *db.Tx) (err error) {
		all, err = db.All(tx, scanFile, "SELECT "+fileColumns+" FROM item WHERE id {{in}}", items)
		return err
	})
	if err != nil {
		return nil, err
	}
	gone := map[int64]bool{}
	for _, f := range all {
		gone[f.id] = f.state == done || f.state == skipped || f.state == dropped || f.state == failed && q.now().Sub(f.ended) > keptParts
	}
	for _, p := range parts {
		if gone[p.Item] {
			over = append(over, p)
		}
	}
	return over, nil
}
