package lab

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed rucio.cfg
var rucioConf string

//go:embed alembic.ini
var alembicConf string

// rucioServer serves Rucio's REST API on the address of its first argument.
const rucioServer = `import sys
from rucio.web.rest.flaskapi.v1.main import application
from werkzeug.serving import run_simple
host, port = sys.argv[1].rsplit(":", 1)
run_simple(host, int(port), application, threaded=True)
`

// rucioWAL lets Rucio read its database while it writes: a rule for thousands of files reads and
// writes in one request, with two connections.
const rucioWAL = `import sqlite3, sys
sqlite3.connect(sys.argv[1]).execute("PRAGMA journal_mode=WAL")
`

// RucioConfig configures a Rucio; its zero value is a valid configuration.
type RucioConfig struct {
	Config
	// Certificate is a PEM file with the certificate and the key that Rucio presents to the transfer service.
	Certificate string
	// Broker has the messages of the transfer service for rucio-conveyor-receiver. It may be nil.
	Broker *Broker
	VO     string // virtual organization of these messages
	Marks  string // URL of the register of SciTags, in which lab is the experiment; "": flows are not marked
}

// A Rucio is a Rucio server.
type Rucio struct{ *System }

type rucioValues struct {
	Dir, Python, Packages, Address, Password, Certificate string
	BrokerPort, BrokerUser, BrokerPassword, VO, Marks     string
}

// Start starts a Rucio server over plain HTTP with an SQLite database, of the Python packages of fts.txt. It has the account root,
// whose user is ddmlab. Env is the environment of its clients and daemons, with their folder in PATH; the daemons run when they are
// started (--run-once).
func (c RucioConfig) Start(ctx context.Context) (*Rucio, error) {
	c.ours = true                            // the daemons write to the database as well
	c.Ready = cmp.Or(c.Ready, 3*time.Minute) // 10 s, more on a busy machine
	s, err := c.launch(ctx, "rucio", "", func(s *System, _ string) { c.build(ctx, s) }, "etc", "log/trace", "run")
	if err != nil {
		return nil, err
	}
	return &Rucio{s}, nil
}

// Needs returns the programs that it needs.
func (RucioConfig) Needs() []string { return []string{"python3", "rucio"} }

func (c RucioConfig) build(ctx context.Context, s *System) {
	python, err := Built("fts")
	if s.fail(err); err != nil {
		return
	}
	packages, err := filepath.Glob(filepath.Join(python, "lib/python3*/site-packages"))
	if err != nil || len(packages) == 0 {
		s.fail(errors.Join(err, fmt.Errorf("lab: rucio: %s has no packages", python)))
		return
	}
	program := filepath.Join(python, "bin/python3")
	p := s.newPort(false)
	v := rucioValues{Dir: s.Dir, Python: python, Packages: packages[0], Address: p.Address(), Password: rand.Text(),
		Certificate: c.Certificate, VO: c.VO, Marks: c.Marks}
	if c.Broker != nil {
		_, v.BrokerPort, _ = strings.Cut(c.Broker.Address("stomp"), ":")
		v.BrokerUser, v.BrokerPassword = c.Broker.Settings[BrokerUser], c.Broker.Settings[BrokerPassword]
	}
	conf := s.config("etc/rucio.cfg", rucioConf, v)
	s.config("etc/alembic.ini", alembicConf, v)
	s.Env = append(s.Env, "RUCIO_HOME="+s.Dir, "RUCIO_CONFIG="+conf, "PYTHONWARNINGS=ignore", "SQLALCHEMY_SILENCE_UBER_WARNING=1",
		"PATH="+filepath.Join(python, "bin")+":"+os.Getenv("PATH"))
	s.tool(ctx, s.user, s.Env, program, filepath.Join(python, "rucio/tools/bootstrap.py"))
	s.tool(ctx, s.user, s.Env, program, "-c", rucioWAL, filepath.Join(s.Dir, "rucio.db"))
	s.URL = "http://" + v.Address
	s.URLs["http"] = s.URL
	server := s.part("rucio", askHTTP(s.URL+"/ping", "version"), program, s.file("serve.py", []byte(rucioServer)), v.Address)
	server.env = append(server.env, s.Env...)
}

// Run runs a program of Rucio, such as rucio-conveyor-poller, or Python ("python3"), and returns its output.
func (r *Rucio) Run(ctx context.Context, program string, args ...string) (string, error) {
	made, err := Built("fts")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(made, "bin")
	if program != "python3" {
		args = append([]string{filepath.Join(bin, program)}, args...)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "python3"), args...)
	cmd.Dir = r.Dir
	cmd.Env = append([]string{"HOME=" + r.Dir, "LC_ALL=C"}, r.Env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", program, err, out)
	}
	return string(out), err
}
