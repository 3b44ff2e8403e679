package storage

import (
	"context"
	"errors"
	"slices"
)

// A Door is one of several equal ways into a service, such as the servers that a
// DNS name stands for.
type Door struct {
	Name    string // host:port
	Service Service
}

// Doors returns a service whose clients come in by doors, of which there is at
// least one: client number n by door n modulo their number (see ClientOf), and
// those without a number by the first. What a door's service does without
// naming a data server is told as done by the door. If all services are
// Reporters, so is the one that is returned. It closes the services of all doors.
func Doors(doors []Door) Service {
	d := &doorway{doors: doors}
	if slices.ContainsFunc(doors, func(one Door) bool { _, asks := one.Service.(Reporter); return !asks }) {
		return d
	}
	return &askedDoors{d}
}

// ClientOf returns a client of s for the virtual client of that number, which
// is not negative. It does not touch the network.
func ClientOf(s Service, number int) Client {
	if d, ok := s.(interface{ clientOf(number int) Client }); ok {
		return d.clientOf(number)
	}
	return s.Client()
}

type doorway struct{ doors []Door }

// Client implements Service.
func (d *doorway) Client() Client { return d.clientOf(0) }

func (d *doorway) clientOf(number int) Client {
	door := &d.doors[number%len(d.doors)]
	return &caller{Client: door.Service.Client(), told: namer{door: door.Name}}
}

// Close implements Service.
func (d *doorway) Close() error {
	var err error
	for i := range d.doors {
		err = errors.Join(err, d.doors[i].Service.Close())
	}
	return err
}

// A caller is a client at one door.
type caller struct {
	Client
	told namer
}

// Do implements Client.
func (c *caller) Do(ctx context.Context, op *Op, p Progress) (Result, error) {
	c.told.Progress = p
	p.ServedBy(c.told.door)
	return c.Client.Do(ctx, op, &c.told)
}

// A namer tells of the door what is told of the target.
type namer struct {
	Progress
	door string
}

// ServedBy implements Progress.
func (n *namer) ServedBy(host string) {
	if host == "" {
		host = n.door
	}
	n.Progress.ServedBy(host)
}

// askedDoors can be asked about their servers.
type askedDoors struct{ *doorway }

// Servers implements Reporter: those of all doors.
func (a *askedDoors) Servers(ctx context.Context) ([]string, error) {
	var all []string
	var errs error
	for i := range a.doors {
		servers, err := a.doors[i].Service.(Reporter).Servers(ctx)
		errs = errors.Join(errs, err)
		for _, s := range servers {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	if len(all) > 0 {
		return all, nil // a door that is shut does not hide the others
	}
	return nil, errs
}

// Report implements Reporter. Doors are equal: any of them can ask.
func (a *askedDoors) Report(ctx context.Context, server string) ([]byte, error) {
	for i := range a.doors {
		if a.doors[i].Name == server {
			return a.doors[i].Service.(Reporter).Report(ctx, server)
		}
	}
	return a.doors[0].Service.(Reporter).Report(ctx, server)
}
