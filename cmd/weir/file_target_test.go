package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

// If the target is a file, runs read this file. This holds for each kind of server.
func TestFileAsTarget(t *testing.T) {
	t.Parallel()
	nginx, ftp, s3 := labtest.Start(t, lab.NginxConfig{}), labtest.Start(t, lab.GridFTPConfig{}), labtest.Start(t, lab.S3Config{})
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte(s3.Settings[lab.S3Secret]+"\n"), 0o600))
	t.Run("all", func(t *testing.T) {
		for name, c := range map[string]struct {
			s   *lab.System
			set string
		}{
			"http": {s: nginx}, "ftp": {s: ftp},
			"s3": {s3, "auth={method: s3, user: " + s3.Settings[lab.S3Key] + ", password_file: " + secret + "}"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				require.NoError(t, c.s.WriteFile(name+"/one file.dat", make([]byte, 1000)))
				require.NoError(t, c.s.WriteFile(name+"/other", make([]byte, 5000)))
				args := []string{"--target", strings.TrimRight(c.s.URL, "/") + "/" + name + "/one%20file.dat", "--clients", "1", "--duration", "1s"}
				if c.set != "" {
					args = append(args, "--set", c.set)
				}
				for _, step := range measureFor(t, args...).Curve {
					if step.Done == 0 || step.Errors > 0 || step.Moved < 1000*(step.Done-1) || step.Moved > 1000*(step.Done+1) {
						t.Errorf("%d operations moved %d bytes, %d errors %v", step.Done, step.Moved, step.Errors, step.ErrorsBy)
					}
				}
			})
		}
	})
}
