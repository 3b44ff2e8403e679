package token

import (
	"crypto/sha256"
	"sync"
	"time"
)

// known remembers for a short time what tokens say that were found good: one is
// shown with each of many requests, and a signature costs as much as a small file.
type known struct {
	mu     sync.Mutex
	tokens map[[sha256.Size]byte]remembered // by digest: the tokens themselves are nowhere kept
}

type remembered struct {
	claims *Claims
	until  time.Time
}

const (
	maxKnown   = 4096
	rememberIn = time.Minute // after which it is looked at anew whether its key still counts
)

func (k *known) get(raw string, now time.Time) *Claims {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.tokens[sha256.Sum256([]byte(raw))]
	if !ok || !now.Before(r.until) || r.until.Sub(now) > rememberIn { // the clock may have been set back
		return nil
	}
	return r.claims
}

func (k *known) put(raw string, c *Claims, now time.Time) {
	until := now.Add(rememberIn)
	if end := c.Expires.Add(leeway); end.Before(until) {
		until = end
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.tokens) >= maxKnown || k.tokens == nil {
		k.tokens = map[[sha256.Size]byte]remembered{}
	}
	k.tokens[sha256.Sum256([]byte(raw))] = remembered{c, until}
}

func (k *known) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tokens = nil
}
