package command_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/require"
	"weir/storage"
)

// TestRenewedTokenReachesPrograms checks that programs that start after a renewal get the renewed
// token.
func TestRenewedTokenReachesPrograms(t *testing.T) {
	of(t, "curl")
	var wanted atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+wanted.Load().(string) {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer s.Close()
	for name, argv := range map[string][]string{
		"preset": {"curl"},
		"own":    {"sh", "-c", `exec curl -sfSI -H "Authorization: Bearer $BEARER_TOKEN" "$0"`, "{url}"},
	} {
		file := filepath.Join(t.TempDir(), "token")
		wanted.Store("first")
		require.NoError(t, os.WriteFile(file, []byte("first"), 0o600))
		cred, err := storage.Auth{Method: storage.TokenAuth, TokenFile: file}.Read()
		require.NoError(t, err)
		c := clientOf(t, storage.Target{URL: parse(t, s.URL), Command: argv, Cred: cred})
		op := storage.Op{Kind: storage.Read, Path: "f", Timeout: time.Minute}
		_, err = c.Do(t.Context(), &op, &heard{})
		require.NoError(t, err)
		wanted.Store("second")
		require.NoError(t, os.WriteFile(file, []byte("second"), 0o600))
		renewals := 0
		for tries := 1; ; tries++ { // programs get the old credential until the next check of the file
			res, err := c.Do(t.Context(), &op, &heard{})
			renewals += res.Renewed
			if err == nil {
				break
			}
			if tries == 1000 {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if renewals != 1 {
			t.Errorf("%s: %d renewals were counted, want 1", name, renewals)
		}
	}
}
