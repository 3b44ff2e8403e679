package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"

	"weir/storage"
)

// A jobService is that of a user's own program, which only does its jobs
// (storage.Run). Files are listed, made and removed by our own driver of the
// target's protocol, which is opened when it is asked first.
type jobService struct {
	storage.Service // of the program
	driver          storage.Driver
	target          storage.Target

	mu    sync.Mutex
	files storage.Service // nil before it was opened
}

// withFiles returns own with the help of the driver of t's scheme, if there is one.
func withFiles(own storage.Service, driver storage.DriverName, t storage.Target, drivers []storage.Driver) storage.Service {
	i := slices.IndexFunc(drivers, func(d storage.Driver) bool {
		return d.Name != driver && slices.Contains(d.Schemes, t.URL.Scheme)
	})
	if i < 0 {
		return own
	}
	t.Command = nil
	return &jobService{Service: own, driver: drivers[i], target: t}
}

// Client implements storage.Service.
func (s *jobService) Client() storage.Client {
	return &jobClient{Client: s.Service.Client(), service: s}
}

// Close implements storage.Service.
func (s *jobService) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.Service.Close()
	if s.files != nil {
		err = errors.Join(err, s.files.Close())
	}
	return err
}

// client returns a client of our own driver.
func (s *jobService) client(ctx context.Context) (storage.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		files, err := s.driver.Open(ctx, s.target)
		if err != nil {
			return nil, err
		}
		s.files = files
	}
	return s.files.Client(), nil
}

// A jobClient runs jobs with one client, and does all else with another.
type jobClient struct {
	storage.Client
	service *jobService
	files   storage.Client // nil before it was asked
}

// Do implements storage.Client.
func (c *jobClient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	if op.Kind == storage.Run {
		return c.Client.Do(ctx, op, p)
	}
	if c.files == nil {
		files, err := c.service.client(ctx)
		if err != nil {
			return storage.Result{Size: -1}, err
		}
		c.files = files
	}
	return c.files.Do(ctx, op, p)
}

// Close implements storage.Client.
func (c *jobClient) Close() error {
	err := c.Client.Close()
	if c.files != nil {
		err = errors.Join(err, c.files.Close())
	}
	return err
}
