// Package weir holds the tests of the whole tree. The program is cmd/weir: it measures the throughput limit of a scientific
// data service and explains it, and it transfers datasets between sites.
//
// ARCHITECTURE.md describes the packages and their imports. The command, the scenario format and
// the run directory are stable; the Go API is not.
package weir
