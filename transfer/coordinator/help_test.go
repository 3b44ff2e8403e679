package coordinator

import (
	"context"
	"testing"

	"weir/internal/require"
	"weir/lab/labtest"
	"weir/transfer"
	"weir/transfer/transfertest"
)

// A service is a coordinator in this process. A change of conf takes effect at the next Begin.
type service struct {
	*Coordinator
	*transfertest.Service

	conf Config
}

// start starts a coordinator.
func start(t *testing.T, conf Config) *service {
	t.Helper()
	if conf.State == "" {
		conf.State = t.TempDir()
	}
	if conf.Listen == "" {
		conf.Listen = labtest.Address(t)
	}
	h := &service{conf: conf}
	h.Service = transfertest.Start(t, func(ctx context.Context) (transfertest.Coordinator, error) {
		c, err := Open(ctx, h.conf)
		h.Coordinator = c
		return c, err
	})
	h.SiteCA = conf.SiteCA
	return h
}

// pair registers two fake agents and submits a request between their sites.
func (h *service) pair(files int) (from, to *transfertest.FakeAgent, q transfer.Request) {
	h.T.Helper()
	from, to = h.FakeAgent("A"), h.FakeAgent("B")
	from.Register("https://127.0.0.1:1/")
	to.Register("")
	h.Register("/store/run1", "A", files, 1000)
	q, err := h.Client.Submit(h.T.Context(), transfer.Submission{Dataset: "/store/run1", To: "B", Approve: true})
	require.NoError(h.T, err)
	return from, to, q
}

// until waits for a condition.
func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, what, f)
}
