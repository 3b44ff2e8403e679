package coordinator

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"sort"
	"time"

	"weir/internal/db"
	"weir/transfer"
)

const (
	mostSamples = 1000                // in one report
	sampleLife  = 14 * 24 * time.Hour // for which samples are kept
	nearSample  = 30 * time.Second    // from the begin of a copy, to count for it
)

// samples keeps what the host of an agent went through.
func (c *Coordinator) samples(ctx context.Context, a *agent, all []transfer.Sample) error {
	if len(all) > mostSamples {
		all = all[len(all)-mostSamples:]
	}
	var rows [][]any
	latest := transfer.Sample{}
	now := c.now()
	for _, s := range all {
		if !share(s.CPU) || !share(s.Memory) || s.Time.After(now.Add(time.Minute)) || s.Time.Before(now.Add(-sampleLife)) {
			continue
		}
		text, err := json.Marshal(s)
		if err != nil {
			continue // a number that is none
		}
		rows = append(rows, []any{a.Site, s.Time, s.CPU, s.Memory, string(text)})
		if s.Time.After(latest.Time) {
			latest = s
		}
	}
	if len(rows) == 0 {
		return nil
	}
	err := c.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Many("INSERT INTO sample (site, at, cpu, memory, rest) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", func(yield func([]any) bool) {
			for _, r := range rows {
				if !yield(r) {
					return
				}
			}
		})
		return err
	})
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	a.latest = latest
	return err
}

func share(x float64) bool { return x >= 0 && x <= 1 && !math.IsNaN(x) }

func (c *Coordinator) pruneSamples(ctx context.Context) error {
	return c.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec("DELETE FROM sample WHERE at < ?", c.now().Add(-sampleLife))
		return err
	})
}

// A moment is what a host was like.
type moment struct {
	at          time.Time
	cpu, memory float64
}

// tries answers with attempts of the past, and what their sources were like when
// they began. after and next are times in nanoseconds since 1970.
func (c *Coordinator) tries(r *http.Request, _ *struct{}) (answer struct {
	Tries []transfer.PastAttempt `json:"tries"`
	Next  int64                  `json:"next"`
}, err error) {
	if _, err = need(r, mayRead); err != nil {
		return answer, err
	}
	after, err := asked(r, "after", 0, 0, math.MaxInt64)
	if err != nil {
		return answer, err
	}
	n, err := asked(r, "n", page1000, 1, most)
	if err != nil {
		return answer, err
	}
	list, err := c.queue.Since(r.Context(), time.Unix(0, after), int(n))
	if err != nil {
		return answer, c.refusal(err)
	}
	hosts, err := c.hosts(r.Context(), list)
	if err != nil {
		return answer, c.refusal(err)
	}
	answer.Tries = make([]transfer.PastAttempt, 0, len(list))
	for _, a := range list {
		t := transfer.PastAttempt{Attempt: a, Bytes: a.Size, CPU: -1, Memory: -1}
		if m, ok := nearest(hosts[a.Source], a.Begin); ok {
			t.CPU, t.Memory = m.cpu, m.memory
		}
		answer.Tries = append(answer.Tries, t)
	}
	if len(list) == int(n) {
		answer.Next = list[len(list)-1].End.UnixNano()
	}
	return answer, nil
}

// hosts are the samples of the sources of attempts, in the order of time.
func (c *Coordinator) hosts(ctx context.Context, list []transfer.Attempt) (map[string][]moment, error) {
	if len(list) == 0 {
		return map[string][]moment{}, nil
	}
	first, last := list[0].Begin, list[0].Begin
	for _, a := range list {
		if a.Begin.Before(first) {
			first = a.Begin
		}
		if a.Begin.After(last) {
			last = a.Begin
		}
	}
	all := map[string][]moment{}
	err := c.db.Read(ctx, func(tx *db.Tx) error {
		clear(all)
		rows, err := tx.Query("SELECT site, at, cpu, memory FROM sample WHERE at >= ? AND at <= ? ORDER BY site, at", first.Add(-nearSample), last.Add(nearSample))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var site string
			var m moment
			if err := rows.Scan(&site, db.When(&m.at), &m.cpu, &m.memory); err != nil {
				return err
			}
			all[site] = append(all[site], m)
		}
		return rows.Err()
	})
	return all, err
}

// nearest is the sample closest to a time.
func nearest(list []moment, at time.Time) (moment, bool) {
	i := sort.Search(len(list), func(i int) bool { return !list[i].at.Before(at) })
	best, found := moment{}, false
	for _, k := range []int{i - 1, i} {
		if k < 0 || k >= len(list) {
			continue
		}
		if d := list[k].at.Sub(at).Abs(); d <= nearSample && (!found || d < best.at.Sub(at).Abs()) {
			best, found = list[k], true
		}
	}
	return best, found
}

// listSamples answers with what the host of a site went through since a time, in
// nanoseconds since 1970.
func (c *Coordinator) listSamples(r *http.Request, _ *struct{}) ([]transfer.Sample, error) {
	if _, err := need(r, mayRead); err != nil {
		return nil, err
	}
	after, err := asked(r, "after", 0, 0, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	n, err := asked(r, "n", page1000, 1, most)
	if err != nil {
		return nil, err
	}
	all := []transfer.Sample{}
	err = c.db.Read(r.Context(), func(tx *db.Tx) error {
		all = all[:0]
		texts, err := db.Column[string](tx, "SELECT rest FROM sample WHERE site = ? AND at > ? ORDER BY at LIMIT ?", r.URL.Query().Get("site"), after, n)
		for _, t := range texts {
			var s transfer.Sample
			if json.Unmarshal([]byte(t), &s) == nil {
				all = append(all, s)
			}
		}
		return err
	})
	return all, c.refusal(err)
}
