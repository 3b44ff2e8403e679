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
//
// Rigs of data challenges (TestChallengeRigs) are at sites behind emulated lines and move little, so
// that several are carried out at the same time:
//
//	go test ./benchmarks/rigs -run TestChallengeRigs -full -area challenge -parallel 4 -keep DIR
//	go test ./benchmarks/rigs -run TestChallengeRigs -full -area challenge -again DIR
//
// The second command analyzes and judges the run directories that the first one kept.
//
// Rigs of diagnoses (TestDiagnoseRigs) are files at real servers behind an emulated line. Each is
// played in network and mount namespaces of its own, in a process of its own. Other tools have to see
// its situation before weir diagnose is judged:
//
//	go test ./benchmarks/rigs -run TestDiagnoseRigs -full -area diagnose -parallel 4 -keep DIR
//	go test ./benchmarks/rigs -run TestDiagnoseRigs/rigs/mtu -full -area diagnose -check
//
// Results of rigs that ended stay in DIR and are not measured again with the same weir; with -again
// DIR they are judged again. The second command only checks a situation.
package rigs
