// Package bench measures weir next to the programs that it must not fall behind (curl, iperf3, wrk, nginx, xrdcp,
// globus-url-copy, rclone and others). It has tests and benchmarks only:
//
//	go test ./bench -run '^$' -bench Peers/download-1 | tee download.txt
//	go test ./bench -run TestWritePage -results $PWD/download.txt -out $PWD/page.md
//
// A benchmark is named Peers/CASE/SIDE/round=N. The sides of a case take turns, and what counts is the ratio of two
// sides in the same round, so that a machine that becomes slower or faster meanwhile does not decide. Each side is a
// process of its own. `make bench` measures all cases and writes docs/benchmarks.md; with -short the cases are small and
// show that everything works, not how fast it is.
package bench
