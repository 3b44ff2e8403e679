package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"weir/internal/db"
	"weir/transfer/dispatch"
	"weir/transfer/fts"
)

// OpenSettings reads the settings from the database, and applies them.
func (c *Configuration) OpenSettings(ctx context.Context) error {
	s := dispatch.Settings{SE: map[string]fts.SELimits{}, Links: map[string]fts.LinkLimits{}, Shares: map[string]fts.Shares{},
		Global: map[string]fts.Global{}}
	_, err := db.Select(ctx, c.db, func(rows *db.Rows) (none struct{}, err error) {
		var kind, name, value string
		if err := rows.Scan(&kind, &name, &value); err != nil {
			return none, err
		}
		switch kind {
		case dispatch.SESetting:
			err = add(s.SE, name, value)
		case dispatch.LinkSetting:
			err = add(s.Links, name, value)
		case dispatch.ShareSetting:
			err = add(s.Shares, name, value)
		case dispatch.GlobalSetting:
			err = add(s.Global, name, value)
		}
		return none, err
	}, "SELECT kind, name, value FROM setting ORDER BY kind, name")
	if err != nil {
		return err
	}
	c.sites.SetSettings(s)
	weights := c.shares
	for _, name := range slices.Sorted(maps.Keys(s.Shares)) { // there is one
		weights = nil
		if s.Shares[name].Active {
			weights = s.Shares[name].Share
		}
	}
	c.queue.SetShares(weights)
	return nil
}

func add[T any](all map[string]T, name, value string) error {
	var one T
	err := json.Unmarshal([]byte(value), &one)
	all[name] = one
	return err
}

// putSetting adds or changes a setting.
func (c *Configuration) putSetting(ctx context.Context, kind, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	err = c.db.Exec(ctx, `INSERT INTO setting (kind, name, value) VALUES (?, ?, ?)
		ON CONFLICT (kind, name) DO UPDATE SET value = excluded.value`, kind, name, string(text))
	if err != nil {
		return err
	}
	c.wake()
	return c.OpenSettings(ctx)
}

// removeSetting removes a setting, if there is one.
func (c *Configuration) removeSetting(ctx context.Context, kind, name string) error {
	if err := c.db.Exec(ctx, "DELETE FROM setting WHERE kind = ? AND name = ?", kind, name); err != nil {
		return err
	}
	c.wake()
	return c.OpenSettings(ctx)
}

// setDefaults sets the parameters that a submission leaves open to the values that an administrator
// has set.
func (c *Configuration) setDefaults(s *fts.Submission) {
	g := c.sites.Settings().Global[dispatch.ForAll]
	s.Retry = cmp.Or(s.Retry, g.Retry)
	s.InQueue = cmp.Or(s.InQueue, time.Duration(g.InQueue)*time.Hour)
	s.Timeout = cmp.Or(s.Timeout, time.Duration(g.Timeout)*time.Second)
}
