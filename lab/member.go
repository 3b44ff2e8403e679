package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Server returns the member of that name, or an error that says which exist.
func (s *System) Server(name string) (Server, error) {
	for _, server := range s.Servers {
		if server.Name == name {
			return server, nil
		}
	}
	return Server{}, fmt.Errorf("lab: %s has no server %q, but %s", s.Name, name, strings.Join(s.names(), ", "))
}

func (s *System) names() []string {
	var names []string
	for _, server := range s.Servers {
		names = append(names, server.Name)
	}
	return names
}

// processes are the parts that belong to the servers of these names or roles,
// or all without any.
func (s *System) processes(of ...string) []*process {
	if len(of) == 0 {
		return s.parts
	}
	var found []*process
	for _, p := range s.parts {
		if slices.Contains(of, p.server) || slices.Contains(of, s.role(p.server)) {
			found = append(found, p)
		}
	}
	return found
}

func (s *System) role(name string) string {
	for _, server := range s.Servers {
		if server.Name == name {
			return server.Role
		}
	}
	return ""
}

// KillPart ends all processes of one server at once, as the crash of its host
// does, and returns when they are gone. Its ports stay reserved: connections
// are refused until RestartPart. Until then, too, XRootD's redirector has
// clients wait who ask for a file that it does not know, such as a new one: a
// dead data server might have it. (Extra with "cms.delay drop 3s" makes it
// forget the dead after 3 s instead of 10 minutes.)
func (s *System) KillPart(name string) error {
	if _, err := s.Server(name); err != nil {
		return err
	}
	parts := s.processes(name)
	for _, p := range slices.Backward(parts) {
		p.stop(0)
	}
	return nil
}

// RestartPart starts one server again with the same address and data, after
// ending what still runs of it, and returns when the system is whole again: at
// once for a data server, after ten seconds or less for a redirector, since
// data servers look for a lost one that seldom.
func (s *System) RestartPart(ctx context.Context, name string) error {
	if err := s.KillPart(name); err != nil {
		return err
	}
	return s.run(ctx, s.processes(name))
}

// SignalPart sends sig to all processes of one server, as Signal does to all.
// It does not wait: a stopped server may answer once more.
func (s *System) SignalPart(name string, sig syscall.Signal) error {
	if _, err := s.Server(name); err != nil {
		return err
	}
	var errs []error
	for _, p := range s.processes(name) {
		errs = append(errs, p.signal(sig))
	}
	return errors.Join(errs...)
}

// settle waits until the system as a whole says that it is ready.
func (s *System) settle(ctx context.Context) error {
	if s.settled == nil {
		return nil
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := s.settled(try)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready in time: %w", err)
		case <-tick.C:
		}
	}
}
