package lab

import (
	"context"
	"crypto/rand"
	"path/filepath"
)

// S3Config says which S3 service is wanted; its zero value is a good one.
type S3Config struct {
	Config
}

// The keys of Settings that sign requests to an S3 service.
const (
	S3Key    = "access_key"
	S3Secret = "secret_key"
)

// Start starts the S3 gateway of Versity with a bucket, whose URL is URL and whose objects are files in Data, and with a generated
// key in Settings.
func (c S3Config) Start(ctx context.Context) (*System, error) {
	return c.launch(ctx, "s3", "versitygw", func(s *System, program string) { s.s3(program) }, "root/data", "properties")
}

func (S3Config) needs() []string { return []string{"versitygw"} }

func (s *System) s3(program string) {
	p := s.newPort(false)
	root, user, secret := filepath.Join(s.Dir, "root"), "weir", rand.Text()
	s.Data = filepath.Join(root, "data")
	s.URL = "http://" + p.address() + "/data"
	s.URLs["http"] = s.URL
	s.set(S3Key, user)
	s.set(S3Secret, secret)
	s.env = append(s.env, "ROOT_ACCESS_KEY="+user, "ROOT_SECRET_KEY="+secret)
	s.part("versitygw", askListener(p.address()), program, "--port", p.address(), "--quiet", "--keep-alive",
		"posix", "--sidecar", filepath.Join(s.Dir, "properties"), root)
}
