package lab

import (
	"cmp"
	"context"
	"crypto/rand"
	"path/filepath"
	"time"
)

// S3Config configures an S3 service; its zero value is a valid configuration.
type S3Config struct {
	Config
	Server string // one of S3Servers; "" means versitygw
}

// S3Servers returns the names of the S3 services: the gateway of Versity, and s3proxy.
func S3Servers() []string { return []string{"versitygw", "s3proxy"} }

// The keys of Settings that sign requests to an S3 service.
const (
	S3Key    = "access_key"
	S3Secret = "secret_key"
)

// Start starts an S3 service with a bucket, whose URL is URL and whose objects are files in Data, and with a generated key in Settings.
// s3proxy writes AccessLog.
func (c S3Config) Start(ctx context.Context) (*System, error) {
	c.Ready = cmp.Or(c.Ready, time.Minute) // s3proxy takes 12 s on a busy machine
	return c.launch(ctx, "s3", c.Needs()[0], func(s *System, program string) { c.build(s, program) }, "root/data", "properties", "tmp")
}

// Needs returns the programs that it needs.
func (c S3Config) Needs() []string {
	if c.Server == "s3proxy" {
		return []string{"s3proxy", "java"}
	}
	return []string{"versitygw"}
}

func (c S3Config) build(s *System, program string) {
	p := s.newPort(false)
	root, user, secret := filepath.Join(s.Dir, "root"), "weir", rand.Text()
	s.Data = filepath.Join(root, "data")
	s.URL = "http://" + p.Address() + "/data"
	s.URLs["http"] = s.URL
	s.set(S3Key, user)
	s.set(S3Secret, secret)
	if c.Server == "s3proxy" {
		s.fail(s.own(s.Data, 0o750)) // a folder that others may read is a public bucket
		conf := s.file("s3proxy.conf", []byte("s3proxy.authorization=aws-v4\ns3proxy.endpoint=http://"+p.Address()+
			"\ns3proxy.identity="+user+"\ns3proxy.credential="+secret+
			"\njclouds.provider=filesystem\njclouds.filesystem.basedir="+root+"\n"))
		s.env = append(s.env, "LOG_LEVEL=debug")
		s.AccessLog = s.part(c.Server, askListener(p.Address()), c.java(s, "-jar", program, "--properties", conf)...).log
		return
	}
	s.env = append(s.env, "ROOT_ACCESS_KEY="+user, "ROOT_SECRET_KEY="+secret)
	s.part("versitygw", askListener(p.Address()), program, "--port", p.Address(), "--quiet", "--keep-alive",
		"posix", "--sidecar", filepath.Join(s.Dir, "properties"), root)
}
