// Package reports updates the pages of docs/reports, which repeat five test reports of particle
// physics. It has tests only; without flags they check the pages, with -run TestMake and -weir they
// make the runs that the pages name:
//
//	go test ./benchmarks/reports -run TestMake -timeout 100h -weir $PWD/bin/weir -only 003-login
//
// NNN-runs.md is the only list of the runs of the report NNN. A run is a block of sh whose command
// has --out runs/NAME; the block of text below it is the output of weir, and
// ![](figures/NAME-FIGURE.svg), there or on the report's page, is a figure of the run. `weir
// compare ... --figures runs/NAME` has several runs on one plot, and `weir analyze TABLE --figures
// runs/NAME` analyzes a published table. TestMake prints how long it will take, runs the commands
// in the folder of the project, in the order of the pages, and writes blocks and figures anew. The
// contents of runs are kept: a command that ended is not run again, an interrupted command is
// resumed, and a run that other programs disturbed is made again on a quiet machine. Each run is
// recorded in runs.csv, whether a page shows it or not; data has the findings and the curve of each. `make reports` makes all of them.
package reports
