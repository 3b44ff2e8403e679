// Package chaos breaks everything that a transfer service stands on, while it
// moves files, and then says whether anything was lost or called right that is
// not. It has nothing but a test: docs/reliability.md tells what it found.
package chaos
