package state

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/db"
	"weir/transfer/access"
)

// claimName is the name that a coordinator claims in its database.
const claimName = "weir coordinator"

// claim claims the database for this coordinator. A standby waits until it is free.
func (s *State) claim(ctx context.Context) (err error) {
	if !s.conf.Standby {
		if s.Claim, err = s.DB.Claim(ctx, claimName, processName()); errors.Is(err, db.ErrTaken) {
			return fmt.Errorf("another coordinator has this database: %w: end that one first, use another database, "+
				"or start this one as its standby (--standby)", err)
		}
		return err
	}
	if s.DB.Dialect() != db.PostgreSQL {
		return errors.New("a standby needs a database that both coordinators reach: use PostgreSQL (--db postgres://...)")
	}
	s.Claim, err = s.DB.AwaitClaim(ctx, claimName, processName(), func(reason error) error {
		s.conf.Log.Info("standby: waiting for the database", "reason", reason)
		if errors.Is(reason, db.ErrTaken) {
			return s.checkKeys(ctx)
		}
		return nil
	})
	if err == nil {
		s.conf.Log.Info("this coordinator is the active one")
		err = s.checkKeys(ctx) // two coordinators may have started for the first time at the same moment
	}
	return err
}

// checkKeys checks that the keys in the state folder belong to the database, if it has tokens: the
// tokens in the database must include the administrator's token that is stored beside the keys. A
// standby with keys of its own would refuse the tokens of agents and users, and could not decrypt
// the secrets of sites.
func (s *State) checkKeys(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(s.conf.Dir, access.AdminFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var all, ours int64
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		tables, err := tx.Tables()
		if err != nil || !slices.Contains(tables, "token") {
			return err
		}
		if err := tx.Row("SELECT COUNT(*) FROM token").Scan(&all); err != nil {
			return err
		}
		return tx.Row("SELECT COUNT(*) FROM token WHERE id = ?", tokenID(string(text))).Scan(&ours)
	})
	if err == nil && all > 0 && ours == 0 {
		err = fmt.Errorf("%s has not the keys of the coordinator of %s: copy the state folder of that one to this machine", s.conf.Dir, s.DB)
	}
	return err
}

// tokenID returns the id in a token, which is not verified, or "" if it has no id.
func tokenID(raw string) string {
	var claims struct {
		ID string `json:"jti"`
	}
	_, rest, _ := strings.Cut(raw, ".")
	body, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.ID
}
