package client

import (
	"bufio"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"weir/transfer"
)

// Events calls f for each event after the given number (0: from now on; -1: from the oldest event
// that is stored), until f or the connection fails or ctx ends. To continue after that, call it
// with the number of the last event. f is called for a heartbeat, an event without a number, every
// few seconds. GET /api/v1/events?after= (SSE)
func (c *Client) Events(ctx context.Context, after int64, f func(transfer.Event) error) error {
	r, err := c.ask.Stream(ctx, "/api/v1/events?after="+strconv.FormatInt(after, 10))
	if err != nil {
		return err
	}
	defer r.Close()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e transfer.Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return err
		}
		if err := f(e); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return lines.Err()
}
