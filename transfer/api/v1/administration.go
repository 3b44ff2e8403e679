package v1

import (
	"time"

	"weir/transfer"
	"weir/transfer/api"
)

// newToken issues a token.
func (h *Handlers) newToken(q *api.Call, in *transfer.NewToken) (transfer.IssuedToken, error) {
	return h.Access.NewToken(q.Context(), in, q.Name)
}

// tokens lists tokens that have not expired, or not long ago, the newest first.
func (h *Handlers) tokens(q *api.Call, _ *struct{}) ([]transfer.Token, error) {
	all, err := h.Access.Tokens(q.Context())
	return api.OrEmpty(all), err
}

// revoke revokes a token. It is refused from then on, also for a waiting poll of an agent.
func (h *Handlers) revoke(q *api.Call, _ *struct{}) (transfer.Token, error) {
	t, err := h.Access.Revoke(q.Context(), q.PathValue("id"), q.Name)
	if err != nil {
		return t, err
	}
	h.State.Agents.Wake()
	h.Events.Broadcast() // followers of events check their tokens as well
	return t, nil
}

// listNotifications returns notifications, the latest first.
func (h *Handlers) listNotifications(q *api.Call, _ *struct{}) ([]transfer.Notification, error) {
	all, err := h.Notifications.List(q.Context())
	return api.OrEmpty(all), err
}

// testNotify sends a test to a target, or to all, and returns the results.
func (h *Handlers) testNotify(q *api.Call, in *transfer.NotifyTest) ([]transfer.NotifyResult, error) {
	return h.Notifications.Test(q.Context(), in.Target, q.Name, h.URL)
}

// history returns past attempts and the load of their sources when they began. after and next are
// times in nanoseconds since 1970.
func (h *Handlers) history(q *api.Call, _ *struct{}) (answer transfer.History, err error) {
	n := q.Rows()
	list, err := h.Queue.Read.Since(q.Context(), time.Unix(0, q.After()), n)
	if err != nil {
		return answer, err
	}
	answer.Tries, err = h.Samples.AddLoads(q.Context(), list)
	if len(list) >= n {
		answer.Next = list[len(list)-1].End.UnixNano()
	}
	return answer, err
}

// listSamples returns the samples of a site's host after a time, in nanoseconds since 1970.
func (h *Handlers) listSamples(q *api.Call, _ *struct{}) ([]transfer.Sample, error) {
	return h.Samples.List(q.Context(), q.Param("site"), q.After(), q.Rows())
}

// listLimitChanges returns changes of limits, the oldest first.
func (h *Handlers) listLimitChanges(q *api.Call, _ *struct{}) ([]transfer.LimitChange, error) {
	source, dest, after, n := q.Param("source"), q.Param("dest"), q.After(), q.Rows()
	list := []transfer.LimitChange{}
	for _, one := range h.Changes.List() {
		if one.ID > after && (source == "" || one.Source == source) && (dest == "" || one.Dest == dest) && len(list) < n {
			list = append(list, one)
		}
	}
	return list, nil
}
