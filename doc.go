// Package weir measures how much load a scientific data service carries, says
// where its throughput stops growing, and whether that can be believed.
//
// The program is cmd/weir. The packages are its rooms, in the order of the
// data: scenario, workload, storage, engine, measure, monitor, results,
// analysis, report; ARCHITECTURE.md tells the way through them. What is stable
// are the command, the scenario format and the run directory, not the Go API.
package weir
