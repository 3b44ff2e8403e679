package access

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

// Lifetimes of the tokens of users.
const (
	usualLife     = 30 * 24 * time.Hour
	longestLife   = 10 * 365 * 24 * time.Hour
	adminLifetime = longestLife
	keptFor       = 30 * 24 * time.Hour // in which an expired token is still listed
	mostListed    = 10000
)

// revoked are the revoked tokens, which are checked for each request. There is one coordinator, so its
// memory agrees with the database.
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

// ErrRevoked returns the error of a token that was revoked.
func ErrRevoked(id string) error {
	return wire.Refuse(http.StatusUnauthorized, "the token %s was revoked", id)
}

// openRevoked reads the revoked tokens.
func (c *Control) openRevoked(ctx context.Context) error {
	ids, err := db.Select(ctx, c.db, db.Value[string], "SELECT id FROM token WHERE revoked > 0")
	c.revoked.add(ids...)
	return err
}

// Issue issues a token, which is recorded before it is given out. by is the requesting user.
func (c *Control) Issue(ctx context.Context, who string, roles []string, life time.Duration, by string) (raw,
	id string, err error) {
	g := token.Grant{Subject: who, Audience: []string{c.issuer.URL()}, Scopes: roles, Life: life, Early: 24 * time.Hour, ID: token.NewID()}
	if raw, err = c.issuer.Mint(g); err != nil {
		return "", "", wire.Refuse(http.StatusBadRequest, "%s", err.Error())
	}
	now := c.now()
	if err = c.db.Exec(ctx, "DELETE FROM token WHERE expires < ?", now.Add(-keptFor)); err == nil {
		err = c.recordToken(ctx, transfer.Token{ID: g.ID, Subject: who, Roles: roles, By: by, Made: now, Expires: now.Add(life)})
	}
	return raw, g.ID, err
}

// recordToken writes a token to the list, unless it is there.
func (c *Control) recordToken(ctx context.Context, t transfer.Token) error {
	const query = `INSERT INTO token (id, subject, roles, made_by, made, expires, revoked_by, revoked)
		VALUES (?, ?, ?, ?, ?, ?, '', 0) ON CONFLICT (id) DO NOTHING`
	return c.db.Exec(ctx, query, t.ID, t.Subject, strings.Join(t.Roles, " "), t.By, t.Made, t.Expires)
}

// NewToken issues the token that a user requests.
func (c *Control) NewToken(ctx context.Context, in *transfer.NewToken, by string) (answer transfer.IssuedToken, err error) {
	if in.Life == 0 {
		in.Life = time.Duration(min(in.LifeSeconds, longestLife.Seconds()+1) * float64(time.Second))
	}
	if in.Life == 0 {
		in.Life = usualLife
	}
	for i := range in.Roles {
		in.Roles[i] = transfer.RoleOf(in.Roles[i])
	}
	if err := CheckToken(in); err != nil {
		return answer, wire.Refuse(http.StatusBadRequest, "%s", err.Error())
	}
	if answer.Token, answer.ID, err = c.Issue(ctx, in.Subject, in.Roles, in.Life, by); err == nil {
		c.log.Info("token issued", "id", answer.ID, "for", in.Subject, "roles", transfer.RoleNames(in.Roles...),
			"life", in.Life.String(), "by", by)
	}
	return answer, err
}

// CheckToken returns an error for tokens without a subject or roles, or with an impossible
// lifetime.
func CheckToken(in *transfer.NewToken) error {
	switch {
	case in.Subject == "" || len(in.Subject) > 200:
		return fmt.Errorf("the subject of the token is required, at most 200 bytes")
	case len(in.Roles) == 0 || len(in.Roles) > 100:
		return fmt.Errorf("the token must have 1 to 100 roles")
	case in.Life < time.Second || in.Life > longestLife:
		return fmt.Errorf("the token lifetime must be between 1 s and %d days", int(longestLife.Hours()/24))
	}
	for _, role := range in.Roles {
		if err := CheckRole(role); err != nil {
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

// Tokens returns tokens that have not expired, or not long ago, the newest first.
func (c *Control) Tokens(ctx context.Context) ([]transfer.Token, error) {
	return db.Select(ctx, c.db, scanToken, tokenColumns+"ORDER BY made DESC, id LIMIT ?", mostListed)
}

// Revoke revokes a token. It is refused from then on.
func (c *Control) Revoke(ctx context.Context, id, by string) (t transfer.Token, err error) {
	if err := c.db.Exec(ctx, "UPDATE token SET revoked = ?, revoked_by = ? WHERE id = ? AND revoked = 0", c.now(), by, id); err != nil {
		return t, err
	}
	found, err := db.Select(ctx, c.db, scanToken, tokenColumns+"WHERE id = ?", id)
	if err != nil {
		return t, err
	}
	if len(found) == 0 {
		return t, wire.Refuse(http.StatusNotFound, "there is no token %.100q: weir coordinator token list shows all", id)
	}
	c.revoked.add(id)
	c.log.Info("token revoked", "id", id, "for", found[0].Subject, "by", by)
	return found[0], nil
}

// Revoked reports whether a token was revoked.
func (c *Control) Revoked(id string) bool { return c.revoked.has(id) }

// openAdmin writes the token of the administrator to the state folder. It issues a new token if the
// former token is no longer valid.
func (c *Control) openAdmin(ctx context.Context) error {
	const by = "the coordinator, at its start"
	file := filepath.Join(c.conf.State, AdminFile)
	issue := func() ([]byte, error) {
		raw, _, err := c.Issue(ctx, "administrator", []string{MayAdmin}, adminLifetime, by)
		return []byte(raw + "\n"), err
	}
	text, err := KeepFile(file, issue)
	if err != nil {
		return err
	}
	who, err := c.TokenHolder(ctx, strings.TrimSpace(string(text)))
	switch {
	case wire.Status(err) == http.StatusUnauthorized:
		if text, err = issue(); err == nil {
			err = durable.Write(file, text, 0o600)
		}
	case err == nil && who.Token != "": // of a coordinator that had no list of tokens
		err = c.recordToken(ctx, transfer.Token{ID: who.Token, Subject: who.Name, Roles: who.Roles, By: by, Made: who.Since, Expires: who.Until})
	}
	return err
}
