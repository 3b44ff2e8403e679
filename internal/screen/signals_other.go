//go:build !unix

package screen

import "os"

func changed() (<-chan os.Signal, func()) { return nil, func() {} }

func resumed(os.Signal) bool { return false }

func (s *Screen) front() bool { return true }

// Shield does nothing: this system has no such signals.
func Shield() (release func()) { return func() {} }
