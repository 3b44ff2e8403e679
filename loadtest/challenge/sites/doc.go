// Package sites makes the files of a data challenge at their sources and removes its copies: only
// files that are in the manifest.
package sites
