// Package monitor watches hosts and processes while a run goes on: this
// machine through /proc, others through a Prometheus page, and tells how much
// its own looking cost.
package monitor
