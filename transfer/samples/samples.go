// Package samples keeps samples of the hosts of sites and of the coordinator in its database, and thins them as they grow old.
package samples

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"weir/internal/db"
	"weir/transfer"
	"weir/transfer/health"
)

// Life is the time for which samples are kept.
const Life = 30 * 24 * time.Hour

const (
	mostSamples  = 1000             // in one report
	fineSamples  = 24 * time.Hour   // for which all samples are kept
	sampleMinute = time.Minute      // that has one sample afterwards
	nearSample   = 30 * time.Second // between a sample and the begin of a transfer that it applies to
)

// A Store keeps samples. It can be used concurrently.
type Store struct {
	DB     *db.DB
	Health *health.Health
	Now    func() time.Time
}

// Keep stores the samples of a site's host, without samples that have impossible values.
func (c *Store) Keep(ctx context.Context, site string, all []transfer.Sample) error {
	type row struct {
		transfer.Sample
		text string
	}
	var rows []row
	now := c.Now()
	for _, s := range all[max(0, len(all)-mostSamples):] {
		text, err := json.Marshal(s) // fails for numbers that are not finite
		if err != nil || !isRatio(s.CPU) || !isRatio(s.Memory) || s.Time.After(now.Add(time.Minute)) || s.Time.Before(now.Add(-Life)) {
			continue
		}
		rows = append(rows, row{s, string(text)})
	}
	if len(rows) == 0 {
		return nil
	}
	const query = "INSERT INTO sample (site, at, cpu, memory, rest) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
	return c.DB.Many(ctx, query, db.Each(rows, func(r row) []any { return []any{site, r.Time, r.CPU, r.Memory, r.text} }))
}

func isRatio(x float64) bool { return x >= 0 && x <= 1 && !math.IsNaN(x) }

// A load is the utilization of a host at a time.
type load struct {
	site        string
	at          time.Time
	cpu, memory float64
}

// AddLoads returns attempts with the load of their sources when they began.
func (c *Store) AddLoads(ctx context.Context, list []transfer.Attempt) ([]transfer.PastAttempt, error) {
	loads, err := c.loads(ctx, list)
	all := make([]transfer.PastAttempt, 0, len(list))
	for _, a := range list {
		t := transfer.PastAttempt{Attempt: a, Bytes: a.Size, CPU: -1, Memory: -1}
		if m, ok := nearest(loads[a.Source], a.Begin); ok {
			t.CPU, t.Memory = m.cpu, m.memory
		}
		all = append(all, t)
	}
	return all, err
}

// loads returns the load of all sites around the attempts, in the order of time.
func (c *Store) loads(ctx context.Context, list []transfer.Attempt) (map[string][]load, error) {
	all := map[string][]load{}
	if len(list) == 0 {
		return all, nil
	}
	byBegin := func(a, b transfer.Attempt) int { return a.Begin.Compare(b.Begin) }
	first, last := slices.MinFunc(list, byBegin).Begin, slices.MaxFunc(list, byBegin).Begin
	rows, err := db.Select(ctx, c.DB, func(r *db.Rows) (m load, err error) {
		return m, r.Scan(&m.site, db.When(&m.at), &m.cpu, &m.memory)
	}, "SELECT site, at, cpu, memory FROM sample WHERE at >= ? AND at <= ? ORDER BY at", first.Add(-nearSample), last.Add(nearSample))
	for _, m := range rows {
		all[m.site] = append(all[m.site], m)
	}
	return all, err
}

// Thin merges the samples of the next minute that is older than fineSamples, one site after
// another. more reports whether there may be another such minute.
func (c *Store) Thin(ctx context.Context) (more bool, err error) {
	var from, first time.Time
	err = c.DB.Read(ctx, func(tx *db.Tx) error {
		if err := tx.Row("SELECT at FROM thinned").Scan(db.When(&from)); err != nil {
			return err
		}
		if oldest := c.Now().Add(-Life); from.Before(oldest) {
			from = oldest
		}
		return tx.Row("SELECT COALESCE(MIN(at), 0) FROM sample WHERE at >= ?", from).Scan(db.When(&first))
	})
	minute := first.Truncate(sampleMinute)
	end := minute.Add(sampleMinute)
	if err != nil || first.IsZero() || end.After(c.Now().Add(-fineSamples)) {
		return false, err
	}
	sites, err := db.Select(ctx, c.DB, db.Value[string], "SELECT DISTINCT site FROM sample WHERE at >= ? AND at < ?", minute, end)
	for _, site := range sites {
		if err == nil {
			err = c.thinSite(ctx, site, minute, end)
		}
	}
	if err == nil {
		err = c.DB.Exec(ctx, "UPDATE thinned SET at = ?", end)
	}
	return err == nil, err
}

// thinSite merges the samples of a site in a minute.
func (c *Store) thinSite(ctx context.Context, site string, minute, end time.Time) error {
	return c.DB.Write(ctx, func(tx *db.Tx) error {
		texts, err := db.Column[string](tx, "SELECT rest FROM sample WHERE site = ? AND at >= ? AND at < ? ORDER BY at", site, minute, end)
		all := readSamples(texts)
		if err != nil || len(all) < 2 {
			return err
		}
		one := mergeSamples(all)
		text, err := json.Marshal(one)
		if err != nil {
			return err
		}
		if _, err = tx.Exec("DELETE FROM sample WHERE site = ? AND at >= ? AND at < ?", site, minute, end); err == nil {
			_, err = tx.Exec("INSERT INTO sample (site, at, cpu, memory, rest) VALUES (?, ?, ?, ?, ?)", site, one.Time, one.CPU, one.Memory,
				string(text))
		}
		return err
	})
}

// mergeSamples returns one sample for the time of several samples, which are in order: utilizations
// and rates are means over the time, amounts are sums, and values at the end of an interval are the
// values of the last sample.
func mergeSamples(all []transfer.Sample) transfer.Sample {
	one := all[len(all)-1]
	one.Seconds, one.OwnCPU, one.EndpointIn, one.EndpointOut = 0, 0, 0, 0
	for _, s := range all {
		one.Seconds += s.Seconds
		one.OwnCPU += s.OwnCPU
		one.EndpointIn += s.EndpointIn
		one.EndpointOut += s.EndpointOut
	}
	if one.Seconds <= 0 {
		return one
	}
	mean := func(of func(*transfer.Sample) *float64) {
		sum := 0.0
		for i := range all {
			sum += *of(&all[i]) * all[i].Seconds
		}
		*of(&one) = sum / one.Seconds
	}
	mean(func(s *transfer.Sample) *float64 { return &s.CPU })
	mean(func(s *transfer.Sample) *float64 { return &s.Memory })
	mean(func(s *transfer.Sample) *float64 { return &s.In })
	mean(func(s *transfer.Sample) *float64 { return &s.Out })
	mean(func(s *transfer.Sample) *float64 { return &s.Read })
	mean(func(s *transfer.Sample) *float64 { return &s.Write })
	mean(func(s *transfer.Sample) *float64 { return &s.MovedBytes })
	return one
}

// readSamples decodes samples from the database.
func readSamples(texts []string) []transfer.Sample {
	all := []transfer.Sample{}
	for _, t := range texts {
		var s transfer.Sample
		if json.Unmarshal([]byte(t), &s) == nil {
			all = append(all, s)
		}
	}
	return all
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

// List returns n samples of a site's host after a time, in nanoseconds since 1970.
func (c *Store) List(ctx context.Context, site string, after int64, n int) ([]transfer.Sample, error) {
	const query = "SELECT rest FROM sample WHERE site = ? AND at > ? ORDER BY at LIMIT ?"
	texts, err := db.Select(ctx, c.DB, db.Value[string], query, site, after, n)
	return readSamples(texts), err
}
