package rigs

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"weir/lab"
	"weir/lab/labtest"
)

// A rucioOf is a Rucio whose transfer service is a coordinator. Its daemons run in turns.
type rucioOf struct {
	*lab.Rucio
	password string // file
}

// rucioParts has the parts of a Rucio with daemons.
const rucioParts = "../../loadtest/challenge/inject/rucio/testdata/rucio.py"

// startRucio starts Rucio and its daemons. The sites are RSEs of their names. The reaper removes files
// in the folders of the sites: it has no client of HTTP here.
func (s *proofService) startRucio() {
	s.rucio = &rucioOf{Rucio: labtest.Start(s.T, lab.RucioConfig{Certificate: s.cert}), password: filepath.Join(s.dir, "password")}
	var rses []map[string]string
	for _, w := range s.sites {
		host, port, err := net.SplitHostPort(w.address)
		s.must(err)
		rses = append(rses, map[string]string{"Name": w.name, "Host": host, "Port": port, "Scheme": "http", "Prefix": w.prefix(),
			"Folder": w.spec.Dir})
	}
	settings, err := os.ReadFile(filepath.Join(s.rucio.Dir, "etc/rucio.cfg"))
	s.must(err)
	password := regexp.MustCompile(`(?m)^password = (.*)$`).FindSubmatch(settings)[1]
	s.must(os.WriteFile(s.rucio.password, password, 0o600))
	s.must(s.part(s.ctx, "setup", map[string]any{"rses": rses, "fts": s.url + "/fts", "scope": "challenge"}))
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	var run sync.WaitGroup
	run.Go(func() {
		if err := s.part(ctx, "daemons", map[string]any{}); ctx.Err() == nil {
			s.Errorf("the daemons of Rucio have ended: %v", err)
		}
	})
	s.Cleanup(func() { cancel(); run.Wait() })
}

// part runs a part of rucioParts.
func (s *proofService) part(ctx context.Context, part string, in any) error {
	program, err := os.ReadFile(rucioParts)
	s.must(err)
	text, err := json.Marshal(in)
	s.must(err)
	file := filepath.Join(s.dir, "rucio-"+part)
	s.must(os.WriteFile(file, text, 0o600))
	out, err := s.rucio.Run(ctx, "python3", "-c", string(program), part, file)
	s.Logf("%s: %.3000s", part, out)
	return err
}

// inject returns the block of Rucio in the file of the challenge.
func (r *rucioOf) inject() string {
	return fmt.Sprintf("inject: {by: rucio, url: '%s', account: root, scope: challenge, "+
		"auth: {method: basic, user: ddmlab, password_file: '%s'}}\n", r.URL, r.password)
}
