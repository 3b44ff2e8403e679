package storage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Discovered returns a with this user's token if method token names no source: the first that is
// not empty of $BEARER_TOKEN, the file $BEARER_TOKEN_FILE, and bt_uUID in $XDG_RUNTIME_DIR and in
// /tmp (WLCG Bearer Token Discovery, https://github.com/WLCG-AuthZ-WG/bearer-token-discovery). It
// returns a unchanged if there is no token.
func (a Auth) Discovered() Auth {
	if a.Method != TokenAuth || a.TokenFile != "" || a.TokenVariable != "" {
		return a
	}
	if strings.TrimSpace(os.Getenv("BEARER_TOKEN")) != "" {
		a.TokenVariable = "BEARER_TOKEN"
		return a
	}
	name := fmt.Sprintf("bt_u%d", os.Geteuid())
	files := []string{os.Getenv("BEARER_TOKEN_FILE"), "", filepath.Join("/tmp", name)}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		files[1] = filepath.Join(dir, name)
	}
	for i, file := range files {
		if file == "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err == nil && len(strings.TrimSpace(string(text))) > 0 || i == 0 && err != nil { // Read reports the problem of a named file
			a.TokenFile = file
			break
		}
	}
	return a
}
