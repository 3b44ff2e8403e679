package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"weir/internal/pause"
)

// longestAfter bounds the pause that a webhook may request.
const longestAfter = time.Hour

// post posts the message with the headers of Standard Webhooks (standardwebhooks.com, 1.0.0). Only
// a response with a status 2xx is a success. Redirects are not followed.
func (s *Sender) post(ctx context.Context, m *Message, body []byte) (after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Webhook, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("webhook: invalid URL")
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "weir")
	r.Header.Set("webhook-id", m.ID)
	r.Header.Set("webhook-timestamp", now)
	if s.Secret != "" {
		key, err := s.secret()
		if err != nil {
			return 0, err
		}
		r.Header.Set("webhook-signature", sign(key, m.ID, now, body))
	}
	answer, err := s.http.Do(r)
	if of := new(url.Error); errors.As(err, &of) {
		err = of.Err // without the URL, whose path may be a secret
	}
	if err != nil {
		return 0, fmt.Errorf("webhook: %w", err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, keptOutput)) // only for error messages
	if answer.StatusCode/100 == 2 {
		return 0, nil
	}
	after = pause.After(answer.Header.Get("Retry-After"), time.Now(), longestAfter)
	return after, fmt.Errorf("webhook: the server answered %d: %s", answer.StatusCode, brief(text))
}

// secret returns the key of the signature: the decoded base64 after whsec_, or the text itself.
func (t *Target) secret() ([]byte, error) {
	text, encoded := strings.CutPrefix(t.Secret, "whsec_")
	if !encoded {
		return []byte(text), nil
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) == 0 {
		return nil, errors.New("secret: after whsec_ base64 is expected")
	}
	return key, nil
}

// sign returns the value of webhook-signature: an HMAC (RFC 2104) with SHA-256 over ID, time and body.
func sign(key []byte, id, now string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%s.", id, now)
	_, _ = mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
