// Package bench measures weir next to the programs that it must not fall behind (curl, iperf3, wrk, nginx, xrdcp,
// globus-url-copy, rclone and others). It has tests and benchmarks only:
//
//	go test ./benchmarks -run '^$' -bench Peers/download-1 | tee download.txt
//	go test ./benchmarks -run TestWritePage -results $PWD/download.txt -out $PWD/page.md
//
// A benchmark is named Peers/CASE/SIDE/round=N. The sides of a case take turns, and the result is
// the ratio of two sides in the same round, so that it does not depend on whether the machine
// becomes slower or faster meanwhile. Each side is a process of its own. `make bench` measures all
// cases and writes docs/benchmarks.md; with -short the cases are small and test that everything
// works, not the speed.
package bench
