// Package rigs plays situations whose truth is known to weir, the whole program with real servers wherever possible. It
// has tests only; they play the short ones, and with -full all of them, and write what weir said of each as a page:
//
//	go test ./benchmarks/rigs
//	go test ./benchmarks/rigs -run TestRigs/lock -full -healthy 0
//
// A rig is a server, a schedule of faults, a scenario, what is true of it by construction, and what findings.json and
// the exit code must say. Rigs run one after the other. What is true is defined by ratios inside a rig, never by
// absolute speed, so that a busy machine can play them. `make rigs` plays all and writes docs/truth.md.
package rigs
