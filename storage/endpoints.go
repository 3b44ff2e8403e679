package storage

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// An Endpoint is one of several equivalent addresses of a service, such as the servers that a DNS name represents.
type Endpoint struct {
	Name    string // host:port
	Service Service
}

// MultiEndpoint returns a service that spreads its clients over endpoints, of which there is at least one. Client
// number n (see ClientOf) uses endpoint n modulo their number; clients without a number use the first. Operations
// that name no data server are attributed to the endpoint. The service is a Reporter if the services of all
// endpoints are. Close closes all of them.
func MultiEndpoint(endpoints []Endpoint) Service {
	m := &multiEndpoint{endpoints}
	if slices.ContainsFunc(endpoints, func(e Endpoint) bool { _, reports := e.Service.(Reporter); return !reports }) {
		return m
	}
	return &multiReporter{m}
}

// ClientOf returns a client of s for the virtual client with the given number, which is not negative. It does not
// touch the network.
func ClientOf(s Service, number int) Client {
	if m, ok := s.(interface{ clientOf(number int) Client }); ok {
		return m.clientOf(number)
	}
	return s.Client()
}

type multiEndpoint struct{ endpoints []Endpoint }

// Client implements Service.
func (m *multiEndpoint) Client() Client { return m.clientOf(0) }

func (m *multiEndpoint) clientOf(number int) Client {
	e := &m.endpoints[number%len(m.endpoints)]
	return &endpointClient{Client: e.Service.Client(), progress: endpointProgress{name: e.Name}}
}

// Close implements Service.
func (m *multiEndpoint) Close() error {
	var err error
	for i := range m.endpoints {
		err = errors.Join(err, m.endpoints[i].Service.Close())
	}
	return err
}

// An endpointClient is a client of one endpoint.
type endpointClient struct {
	Client
	progress endpointProgress
}

// Do implements Client.
func (c *endpointClient) Do(ctx context.Context, op *Op, p Progress) (Result, error) {
	c.progress.Progress = p
	p.ServedBy(c.progress.name)
	return c.Client.Do(ctx, op, &c.progress)
}

// An endpointProgress names the endpoint if a driver does not report the data server.
type endpointProgress struct {
	Progress
	name string
}

// ServedBy implements Progress.
func (p *endpointProgress) ServedBy(host string) {
	host = cmp.Or(host, p.name)
	p.Progress.ServedBy(host)
}

// A multiReporter has endpoints that are all Reporters.
type multiReporter struct{ *multiEndpoint }

// Servers implements Reporter. It returns the servers of all endpoints, and an error only if all
// endpoints fail.
func (m *multiReporter) Servers(ctx context.Context) ([]string, error) {
	var all []string
	var errs error
	for i := range m.endpoints {
		servers, err := m.endpoints[i].Service.(Reporter).Servers(ctx)
		errs = errors.Join(errs, err)
		for _, s := range servers {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, errs
}

// Report implements Reporter. Any endpoint can report on a server that is not an endpoint.
func (m *multiReporter) Report(ctx context.Context, server string) ([]byte, error) {
	i := max(slices.IndexFunc(m.endpoints, func(e Endpoint) bool { return e.Name == server }), 0)
	return m.endpoints[i].Service.(Reporter).Report(ctx, server)
}
