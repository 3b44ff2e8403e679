//go:build !unix

package screen

import "os"

// changed tells nothing: there are no such signals.
func changed() (<-chan os.Signal, func()) { return nil, func() {} }

func resumed(os.Signal) bool { return false }

func (s *Screen) front() bool { return true }

// Shield does nothing: no signal comes from a terminal that is lost.
func Shield() (release func()) { return func() {} }
