package client

import (
	"context"

	"weir/transfer"
)

// Register registers the agent of a site. POST /api/v1/agent/register
func (c *Client) Register(ctx context.Context, h transfer.Register) (transfer.Registration, error) {
	return post[transfer.Registration](ctx, c, transfer.RegisterPath, h)
}

// Deregister deregisters the agent of a site. POST /api/v1/agent/deregister
func (c *Client) Deregister(ctx context.Context, g transfer.Deregister) error {
	_, err := post[struct{}](ctx, c, transfer.DeregisterPath, g)
	return err
}

// Work requests leases, and waits up to 20 s until there are any. POST /api/v1/agent/work
func (c *Client) Work(ctx context.Context, w transfer.PollRequest) (transfer.Work, error) {
	return post[transfer.Work](ctx, c, transfer.WorkPath, w)
}

// Report sends the report of an agent. POST /api/v1/agent/report
func (c *Client) Report(ctx context.Context, r transfer.Report) (transfer.Ack, error) {
	return post[transfer.Ack](ctx, c, transfer.ReportPath, r)
}

// Clock returns the time of the coordinator. POST /api/v1/agent/clock
func (c *Client) Clock(ctx context.Context) (transfer.Clock, error) {
	return post[transfer.Clock](ctx, c, transfer.ClockPath, struct{}{})
}
