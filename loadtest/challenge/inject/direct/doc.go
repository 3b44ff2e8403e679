// Package direct injects copies by third-party requests to the sites themselves: COPY of HTTP, or
// the two opens of XRootD.
package direct
