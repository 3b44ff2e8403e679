package xrootd

import (
	"os"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
)

// TestRefusedTokenIsReadAgain checks that a login with a refused token reads the file again and
// logs in with the renewed token, in the same operation.
func TestRefusedTokenIsReadAgain(t *testing.T) {
	s := labtest.Start(t, lab.XRootDConfig{Auth: "ztn"})
	file, err := s.TokenFor(0, "")
	require.NoError(t, err)
	cred, err := storage.Auth{Method: storage.TokenAuth, TokenFile: file, CAFile: s.CAFile}.Read()
	require.NoError(t, err)
	c := clientAt(t, s.URL, cred)
	login := func() (storage.Result, error) {
		return c.Do(t.Context(), &storage.Op{Kind: storage.Stat, Timeout: 20 * time.Second}, &events{})
	}
	if _, err := login(); storage.Classify(err) != storage.Denied {
		t.Fatalf("with an expired token: %v", err)
	}
	fresh, err := s.Token(time.Hour, "")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(fresh), 0o600))
	if res, err := login(); err != nil || res.Renewed != 1 {
		t.Errorf("with the renewed token: %d renewals, %v", res.Renewed, err)
	}
}
