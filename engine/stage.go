package engine

import (
	"errors"
	"time"

	"weir/storage"
)

// staged is a job that works on a copy of its file. Not there yet.
func (l *life) staged(c *client, _ time.Duration) storage.Class {
	c.meter.Start(storage.Read)
	return c.meter.End(&storage.Result{}, errors.ErrUnsupported)
}
