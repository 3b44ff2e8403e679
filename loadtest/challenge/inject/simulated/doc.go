// Package simulated is a model of sites, links and a transfer service, in its own time, for tests and
// estimates.
package simulated
