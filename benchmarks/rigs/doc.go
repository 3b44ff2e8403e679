// Package rigs tests weir in situations with a known truth: the whole program, with real servers
// wherever possible. It has tests only; they play the short rigs, or with -full all rigs, and write
// a page with weir's report of each rig:
//
//	go test ./benchmarks/rigs
//	go test ./benchmarks/rigs -run TestRigs/lock -full -healthy 0
//
// A rig is a server, a schedule of faults, a scenario, a truth that holds by construction, and
// expectations of findings.json and of the exit code. Rigs run one after the other. The truth is
// defined by ratios inside a rig, never by absolute speed, so that a busy machine can play them.
// `make rigs` plays all rigs and writes docs/truth.md.
package rigs
