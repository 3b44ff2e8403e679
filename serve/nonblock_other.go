//go:build !unix || solaris || aix

package serve

const nonblock = 0
