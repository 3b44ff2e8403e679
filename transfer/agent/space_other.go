//go:build !linux

package agent

import "os"

// freeSpace is unknown on this system.
func freeSpace(*os.File) int64 { return -1 }
