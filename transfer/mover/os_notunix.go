//go:build !unix

package mover

import (
	"time"
)

// nonblock: there are no named pipes in folders here.
const nonblock = 0

// cpu is not known here.
func cpu() time.Duration { return 0 }
