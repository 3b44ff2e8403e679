// Package chaos injects faults into everything that a transfer service depends on, while it moves
// files. It then checks whether any file was lost or wrongly reported as good. It contains only a
// test; docs/reliability.md describes its results.
package chaos
