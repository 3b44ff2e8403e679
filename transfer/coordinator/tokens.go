package coordinator

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"weir/internal/db"
	"weir/internal/durable"
	"weir/internal/token"
	"weir/internal/wire"
	"weir/transfer"
)

// Lives of tokens that users are given.
const (
	usualLife   = 30 * 24 * time.Hour
	longestLife = 10 * 365 * 24 * time.Hour
	keptFor     = 30 * 24 * time.Hour // in which one that has ended is still listed
	mostListed  = 10000
)

// revoked are the tokens that were taken back, which is looked at with each question:
// there is one coordinator, so that its memory says what the database does.
type revoked struct {
	mu  sync.RWMutex
	ids map[string]bool
}

func (r *revoked) has(id string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.ids[id]
}

func (r *revoked) add(ids ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		r.ids = map[string]bool{}
	}
	for _, id := range ids {
		r.ids[id] = true
	}
}

// errRevoked is the answer to a token that was taken back.
func errRevoked(id string) error {
	return wire.Refuse(http.StatusUnauthorized, "the token %s was revoked", id)
}

// openRevoked learns which tokens were taken back.
func (c *Coordinator) openRevoked(ctx context.Context) error {
	return c.db.Read(ctx, func(tx *db.Tx) error {
		ids, err := db.Column[string](tx, "SELECT id FROM token WHERE revoked > 0")
		c.revoked.add(ids...)
		return err
	})
}

// mintRole makes a token, which is written down before anybody has it. by is who
// asked for it.
func (c *Coordinator) mintRole(ctx context.Context, who string, roles []string, life time.Duration, by string) (raw, id string, err error) {
	g := token.Grant{Subject: who, Audience: []string{c.issuer.URL()}, Scopes: roles, Life: life, Early: 24 * time.Hour, ID: token.NewID()}
	if raw, err = c.issuer.Mint(g); err != nil {
		return "", "", wire.Refuse(http.StatusBadRequest, "%s", err.Error())
	}
	now := c.now()
	err = c.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec("DELETE FROM token WHERE expires < ?", now.Add(-keptFor).UnixNano()); err != nil {
			return err
		}
		_, err := tx.Exec("INSERT INTO token (id, subject, roles, made_by, made, expires, revoked_by, revoked) VALUES (?, ?, ?, ?, ?, ?, '', 0)",
			g.ID, who, strings.Join(roles, " "), by, now.UnixNano(), now.Add(life).UnixNano())
		return err
	})
	return raw, g.ID, err
}

// newToken makes a token.
func (c *Coordinator) newToken(r *http.Request, in *transfer.NewToken) (answer struct {
	Token string `json:"token"`
	ID    string `json:"id"`
}, err error) {
	who, err := need(r, mayAdmin)
	if err != nil {
		return answer, err
	}
	if in.Life == 0 {
		in.Life = usualLife
	}
	if err := fitToken(in); err != nil {
		return answer, wire.Refuse(http.StatusBadRequest, "%s", err.Error())
	}
	if answer.Token, answer.ID, err = c.mintRole(r.Context(), in.Subject, in.Roles, in.Life, who.name); err != nil {
		return answer, c.refusal(err)
	}
	c.log.Info("a token was made", "id", answer.ID, "for", in.Subject, "roles", in.Roles, "life", in.Life.String(), "by", who.name)
	return answer, nil
}

func fitToken(in *transfer.NewToken) error {
	switch {
	case in.Subject == "" || len(in.Subject) > 200:
		return fmt.Errorf("a token is for somebody: a name of at most 200 letters")
	case len(in.Roles) == 0 || len(in.Roles) > 100:
		return fmt.Errorf("a token has roles: between 1 and 100 of them")
	case in.Life < time.Second || in.Life > longestLife:
		return fmt.Errorf("a token lives for a second at least, and %d days at most", int(longestLife.Hours()/24))
	}
	for _, role := range in.Roles {
		if err := roleIsOne(role); err != nil {
			return err
		}
	}
	return nil
}

const tokenColumns = "SELECT id, subject, roles, made_by, made, expires, revoked_by, revoked FROM token "

func scanToken(rows *db.Rows) (t transfer.Token, err error) {
	var roles string
	err = rows.Scan(&t.ID, &t.Subject, &roles, &t.By, db.When(&t.Made), db.When(&t.Expires), &t.RevokedBy, db.When(&t.Revoked))
	t.Roles = strings.Fields(roles)
	return t, err
}

// tokens lists tokens that have not ended, and those that did so lately; the newest
// ones first.
func (c *Coordinator) tokens(r *http.Request, _ *struct{}) (all []transfer.Token, err error) {
	if _, err := need(r, mayAdmin); err != nil {
		return nil, err
	}
	err = c.db.Read(r.Context(), func(tx *db.Tx) (err error) {
		all, err = db.All(tx, scanToken, tokenColumns+"ORDER BY made DESC, id LIMIT ?", mostListed)
		return err
	})
	return filled(all), c.refusal(err)
}

// revoke takes a token back. Whoever shows it is refused from then on; an agent's
// question for work that waits is answered so.
func (c *Coordinator) revoke(r *http.Request, _ *struct{}) (t transfer.Token, err error) {
	who, err := need(r, mayAdmin)
	if err != nil {
		return t, err
	}
	id, now := r.PathValue("id"), c.now().UnixNano()
	err = c.db.Write(r.Context(), func(tx *db.Tx) error {
		if _, err := tx.Exec("UPDATE token SET revoked = ?, revoked_by = ? WHERE id = ? AND revoked = 0", now, who.name, id); err != nil {
			return err
		}
		found, err := db.All(tx, scanToken, tokenColumns+"WHERE id = ?", id)
		if err == nil && len(found) == 0 {
			return wire.Refuse(http.StatusNotFound, "there is no token %.100q: weir coordinator token list tells those that there are", id)
		}
		if err == nil {
			t = found[0]
		}
		return err
	})
	if err != nil {
		return t, c.refusal(err)
	}
	c.revoked.add(id)
	c.log.Info("a token was revoked", "id", id, "for", t.Subject, "by", who.name)
	c.registry.mu.Lock()
	for _, a := range c.registry.agents {
		a.ring() // each looks whether it is its own
	}
	c.registry.mu.Unlock()
	c.eventsChanged.give() // and who follows events
	return t, nil
}

// openAdmin leaves a token for the administrator, a new one if that of before does
// not count any more.
func (c *Coordinator) openAdmin(ctx context.Context) error {
	file := filepath.Join(c.conf.State, adminFile)
	mint := func() ([]byte, error) {
		raw, _, err := c.mintRole(ctx, "administrator", []string{mayAdmin}, adminLife, "the coordinator, at its start")
		return []byte(raw + "\n"), err
	}
	text, err := keepFile(file, mint)
	if err != nil {
		return err
	}
	who, err := c.holder(ctx, strings.TrimSpace(string(text)))
	switch status := wire.Status(err); {
	case status == http.StatusUnauthorized:
		if text, err = mint(); err == nil {
			err = durable.Write(file, text, 0o600)
		}
	case err == nil:
		err = c.writtenDown(ctx, who)
	}
	return err
}

// writtenDown notes a token of a coordinator that kept no list of them yet.
func (c *Coordinator) writtenDown(ctx context.Context, who caller) error {
	if who.token == "" {
		return nil
	}
	return c.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec("INSERT INTO token (id, subject, roles, made_by, made, expires, revoked_by, revoked) VALUES (?, ?, ?, ?, ?, ?, '', 0) ON CONFLICT (id) DO NOTHING",
			who.token, who.name, strings.Join(who.roles, " "), "the coordinator, at its start", who.since.UnixNano(), who.until.UnixNano())
		return err
	})
}

// adminLife is that of the token that the first start leaves.
const adminLife = 10 * 365 * 24 * time.Hour
