package coordinator

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"weir/internal/db"
	"weir/transfer"
)

const (
	mostSamples = 1000                // in one report
	sampleLife  = 14 * 24 * time.Hour // for which samples are kept
	nearSample  = 30 * time.Second    // between a sample and the begin of a transfer that it applies to
)

// saveSamples stores the samples of an agent's host.
func (c *Coordinator) saveSamples(ctx context.Context, a *agent, all []transfer.Sample) error {
	latest, err := c.keepSamples(ctx, a.Site, all)
	if latest.Time.IsZero() {
		return err
	}
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	a.latest = latest
	return err
}

// keepSamples stores the samples of a site's host, without those that are impossible, and returns the latest one.
func (c *Coordinator) keepSamples(ctx context.Context, site string, all []transfer.Sample) (latest transfer.Sample, err error) {
	type row struct {
		transfer.Sample
		text string
	}
	var rows []row
	now := c.now()
	for _, s := range all[max(0, len(all)-mostSamples):] {
		text, err := json.Marshal(s) // fails for numbers that are not finite
		if err != nil || !isRatio(s.CPU) || !isRatio(s.Memory) || s.Time.After(now.Add(time.Minute)) || s.Time.Before(now.Add(-sampleLife)) {
			continue
		}
		rows = append(rows, row{s, string(text)})
		if s.Time.After(latest.Time) {
			latest = s
		}
	}
	if len(rows) == 0 {
		return latest, nil
	}
	const query = "INSERT INTO sample (site, at, cpu, memory, rest) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
	return latest, c.db.Many(ctx, query, db.Each(rows, func(r row) []any { return []any{site, r.Time, r.CPU, r.Memory, r.text} }))
}

func isRatio(x float64) bool { return x >= 0 && x <= 1 && !math.IsNaN(x) }

// A load is the utilization of a host at a time.
type load struct {
	site        string
	at          time.Time
	cpu, memory float64
}

// history answers with past attempts and the load of their sources when they began. after and next
// are times in nanoseconds since 1970.
func (c *Coordinator) history(q *call, _ *struct{}) (answer transfer.History, err error) {
	n := q.rows()
	list, err := c.queue.Since(q.Context(), time.Unix(0, q.after()), n)
	if err != nil {
		return answer, err
	}
	loads, err := c.loads(q.Context(), list)
	answer.Tries = make([]transfer.PastAttempt, 0, len(list))
	for _, a := range list {
		t := transfer.PastAttempt{Attempt: a, Bytes: a.Size, CPU: -1, Memory: -1}
		if m, ok := nearest(loads[a.Source], a.Begin); ok {
			t.CPU, t.Memory = m.cpu, m.memory
		}
		answer.Tries = append(answer.Tries, t)
	}
	if len(list) == n {
		answer.Next = list[n-1].End.UnixNano()
	}
	return answer, err
}

// loads returns the load of all sites around the attempts, in the order of time.
func (c *Coordinator) loads(ctx context.Context, list []transfer.Attempt) (map[string][]load, error) {
	all := map[string][]load{}
	if len(list) == 0 {
		return all, nil
	}
	byBegin := func(a, b transfer.Attempt) int { return a.Begin.Compare(b.Begin) }
	first, last := slices.MinFunc(list, byBegin).Begin, slices.MaxFunc(list, byBegin).Begin
	rows, err := db.Select(ctx, c.db, func(r *db.Rows) (m load, err error) {
		return m, r.Scan(&m.site, db.When(&m.at), &m.cpu, &m.memory)
	}, "SELECT site, at, cpu, memory FROM sample WHERE at >= ? AND at <= ? ORDER BY site, at", first.Add(-nearSample), last.Add(nearSample))
	for _, m := range rows {
		all[m.site] = append(all[m.site], m)
	}
	return all, err
}

// nearest returns the load closest to a time.
func nearest(list []load, at time.Time) (best load, found bool) {
	i, _ := slices.BinarySearchFunc(list, at, func(m load, at time.Time) int { return m.at.Compare(at) })
	for _, m := range list[max(0, i-1):min(len(list), i+1)] {
		if d := m.at.Sub(at).Abs(); d <= nearSample && (!found || d < best.at.Sub(at).Abs()) {
			best, found = m, true
		}
	}
	return best, found
}

// listSamples answers with the samples of a site's host after a time, in nanoseconds since 1970.
func (c *Coordinator) listSamples(q *call, _ *struct{}) ([]transfer.Sample, error) {
	const query = "SELECT rest FROM sample WHERE site = ? AND at > ? ORDER BY at LIMIT ?"
	texts, err := db.Select(q.Context(), c.db, db.Value[string], query, q.param("site"), q.after(), q.rows())
	all := []transfer.Sample{}
	for _, t := range texts {
		var s transfer.Sample
		if json.Unmarshal([]byte(t), &s) == nil {
			all = append(all, s)
		}
	}
	return all, err
}
