package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
)

// slow is a service that instructs each of its clients to wait for a second, or takes that time
// itself.
type slow struct {
	storage.Service
	waits     int
	mu        sync.Mutex
	now, most int
}

func (s *slow) Client() storage.Client { return &slowClient{s} }

type slowClient struct{ s *slow }

func (c *slowClient) Do(context.Context, *storage.Op, storage.Progress) (storage.Result, error) {
	c.s.count(1)
	time.Sleep(time.Second)
	c.s.count(-1)
	return storage.Result{Size: -1, Waits: c.s.waits}, nil
}

func (*slowClient) Close() error { return nil }

func (s *slow) count(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now += by
	s.most = max(s.most, s.now)
}

// Many clients prepare only if they wait because the service instructed them to.
func TestPreparingClientsThatAreToldToWait(t *testing.T) {
	for _, tt := range []struct {
		waits int
		most  int
		under time.Duration
	}{{0, prepareClients, 100 * time.Second}, {1, patientClients, 12 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			conf, _ := closed(t, "simulated://x?files=0x0", workload.Work{Kind: "write", Size: workload.Dist{Fixed: 1}}, stepOf(1500, 1))
			conf.Plan.Files = scenario.Files{}
			s := &slow{Service: conf.Service, waits: tt.waits}
			conf.Service = s
			begin := time.Now()
			if _, err := Prepare(t.Context(), conf, nil, nil); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); s.most != tt.most || took > tt.under {
				t.Errorf("waits %d: %d clients prepared at once in %v, want %d in at most %v", tt.waits, s.most, took, tt.most, tt.under)
			}
		})
	}
}
