//go:build !unix

package mover

// nonblock: there are no named pipes in folders here.
const nonblock = 0
