//go:build !unix

package mover

import "time"

// cpu is not known here.
func cpu() time.Duration { return 0 }
