package requests

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"weir/internal/wire"
	"weir/transfer/access"
)

// A Quota limits the submissions of a user or of a virtual organization. 0 is no limit.
type Quota struct {
	Files       int // that have not ended
	Submissions int // in a minute
}

// filesRetry is the time after which a user who has too many open files should submit again.
const filesRetry = time.Minute

// quotas count submissions in the present minute, and the files of submissions in progress, by user
// and virtual organization.
type quotas struct {
	mu     sync.Mutex
	minute time.Time // when it began
	made   map[string]int
	adding map[string]int64
}

// Admit returns an error for a submission of so many files that exceeds a limit. The caller calls
// done after it was written.
func (c *Service) Admit(ctx context.Context, w access.Caller, files int) (done func(), err error) {
	c.quotas.mu.Lock()
	defer c.quotas.mu.Unlock()
	now := c.now()
	if since := now.Sub(c.quotas.minute); since < 0 || since >= time.Minute {
		c.quotas.minute, c.quotas.made = now, map[string]int{}
	}
	vo := c.access.VOsOf(w)[0]
	limits := []struct {
		key, whose string
		Quota
		open func(context.Context) (int64, error)
	}{
		{"user " + w.Name, "you have", c.conf.UserQuota, func(ctx context.Context) (int64, error) { return c.queue.Read.OpenFiles(ctx, w.Name) }},
		{"vo " + vo, fmt.Sprintf("users of %.100s have", vo), c.conf.VOQuota,
			func(ctx context.Context) (int64, error) { return c.queue.Read.OpenFilesOfVO(ctx, vo) }},
	}
	for _, l := range limits {
		if l.Submissions > 0 && c.quotas.made[l.key] >= l.Submissions {
			return nil, tooMany(c.quotas.minute.Add(time.Minute).Sub(now), "%s made %d submissions in this minute, of %d", l.whose,
				c.quotas.made[l.key], l.Submissions)
		}
		if l.Files == 0 {
			continue
		}
		open, err := l.open(ctx)
		if err != nil {
			return nil, err
		}
		if open += c.quotas.adding[l.key]; open+int64(files) > int64(l.Files) {
			return nil, tooMany(filesRetry, "%s %d files that have not ended, and may have %d: %d more are too many", l.whose, open, l.Files, files)
		}
	}
	if c.quotas.adding == nil {
		c.quotas.adding = map[string]int64{}
	}
	for _, l := range limits {
		c.quotas.made[l.key]++
		c.quotas.adding[l.key] += int64(files)
	}
	return func() {
		c.quotas.mu.Lock()
		defer c.quotas.mu.Unlock()
		for _, l := range limits {
			if c.quotas.adding[l.key] -= int64(files); c.quotas.adding[l.key] <= 0 {
				delete(c.quotas.adding, l.key)
			}
		}
	}, nil
}

func tooMany(after time.Duration, format string, a ...any) error {
	return &wire.Error{Status: http.StatusTooManyRequests, After: max(after, time.Second), Text: fmt.Sprintf(format, a...)}
}
