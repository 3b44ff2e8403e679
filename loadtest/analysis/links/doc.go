// Package links analyzes the links of a data challenge: the achieved rates against their targets, and
// the causes of what was missing, minute by minute.
package links
