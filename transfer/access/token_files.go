package access

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/internal/durable"
	"weir/transfer"
)

// A TokenFile is a token that the coordinator writes to a file at its start, unless the file has a
// token for the same subject and roles that is valid for a tenth of its lifetime.
type TokenFile struct {
	Token transfer.NewToken
	File  string
}

// Check returns an error if the token cannot be issued, or if its file has something else than a token.
func (t *TokenFile) Check() error {
	if err := CheckToken(&t.Token); err != nil {
		return err
	}
	_, err := t.read()
	return err
}

// read returns the token in the file, "" if there is no token.
func (t *TokenFile) read() (string, error) {
	text, err := os.ReadFile(t.File)
	raw := strings.TrimSpace(string(text))
	switch {
	case errors.Is(err, os.ErrNotExist) || err == nil && raw == "":
		return "", nil
	case err == nil && (!strings.HasPrefix(raw, "ey") || strings.Count(raw, ".") != 2 || strings.ContainsAny(raw, " \r\n")):
		err = fmt.Errorf("%s has something else than a token: name another file", t.File)
	}
	return raw, err
}

// KeepToken writes a token to its file. A file with something else than a token stays, with an error.
func (c *Control) KeepToken(ctx context.Context, t TokenFile) error {
	if err := CheckToken(&t.Token); err != nil {
		return err
	}
	old, err := t.read()
	if err != nil {
		return err
	}
	if old != "" {
		who, err := c.TokenHolder(ctx, old)
		same := err == nil && who.Name == t.Token.Subject && slices.Equal(who.Roles, t.Token.Roles)
		if same && who.Until.Sub(c.now()) > t.Token.Life/10 {
			return nil
		}
	}
	raw, id, err := c.Issue(ctx, t.Token.Subject, t.Token.Roles, t.Token.Life, "the configuration file")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(t.File), 0o700); err != nil {
		return err
	}
	c.log.Info("token written", "id", id, "for", t.Token.Subject, "file", t.File, "life", t.Token.Life.Round(time.Second).String())
	return durable.Write(t.File, []byte(raw+"\n"), 0o600)
}
