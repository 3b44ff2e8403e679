// Package theory tests the engine and the analysis with simulated services whose curve is known
// exactly, and counts how often they find the exact result. It contains only tests; docs/methods.md
// describes the counts.
package theory
