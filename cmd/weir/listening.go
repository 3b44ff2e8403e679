package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"weir/dashboard"
)

// listening says in plain words why nothing can listen at an address.
func listening(what string, err error) error {
	var op *net.OpError
	if !errors.As(err, &op) || op.Addr == nil {
		return err
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: another program listens at %v: choose another port", what, op.Addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s: %v is no address of this machine", what, op.Addr)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s: this user may not listen at %v: choose a port above 1023", what, op.Addr)
	}
	return err
}

// apart says what was meant where --watch ADDRESS was written instead of
// --watch=ADDRESS, so that the address was taken for a scenario.
func (f *watchFlags) apart(args []string, err error) error {
	for _, arg := range args {
		if _, missing := os.Lstat(arg); f.address != watchHere || missing == nil {
			continue
		}
		if _, _, bad := net.SplitHostPort(arg); bad == nil {
			if _, bad := dashboard.ParseAddress(arg); bad == nil {
				return exit{exitUsage, fmt.Errorf("%w; if that is where the live page shall be, write --watch=%s", err, line(arg))}
			}
		}
	}
	return err
}
