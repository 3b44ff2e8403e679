// Package engine steps virtual clients up and down and keeps them busy with
// tasks of a workload, while meters count.
package engine
