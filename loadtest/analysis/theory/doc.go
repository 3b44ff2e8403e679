// Package theory holds the engine and the analysis against simulated services
// whose curve is known exactly, and says how often they find the truth. It has
// nothing but tests; docs/methods.md tells what they count.
package theory
