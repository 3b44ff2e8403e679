package lab

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"
)

//go:embed xrootd.cfg
var xrootdConf string

// XRootDConfig says which XRootD server is wanted; its zero value is a good one.
type XRootDConfig struct {
	Config
	Extra string // lines for the configuration, in XRootD's own language
}

// XRootD starts one XRootD data server that speaks root:// and HTTP on the
// same port and knows the checksums adler32, md5 and crc32c.
//
// URLs has "root" (also URL) and "http", with TLS "roots" and "https", too.
// The server listens on every address, since it knows no other way, but
// refuses clients that do not come from 127.0.0.1.
func XRootD(ctx context.Context, c XRootDConfig) (*System, error) {
	return c.launch(ctx, "xrootd", "xrootd", func(s *System, program string) error { return s.xrootd(c, program) }, "root/data", "admin", "run")
}

func (s *System) xrootd(c XRootDConfig, program string) error {
	s.Data = filepath.Join(s.Dir, "root/data")
	p, err := s.port(true)
	if err != nil {
		return err
	}
	values := map[string]string{"Dir": s.Dir, "Port": p.String(), "Extra": c.Extra}
	s.URL = "root://" + p.address() + "//data"
	s.URLs = map[string]string{"root": s.URL, "http": "http://" + p.address() + "/data"}
	if c.TLS {
		if values["Cert"], values["Key"], err = s.certificate(); err != nil {
			return err
		}
		values["CADir"] = s.CADir
		s.URLs["roots"] = "roots://" + p.local() + "//data"
		s.URLs["https"] = "https://" + p.local() + "/data"
	}
	conf, err := render(xrootdConf, values)
	if err != nil {
		return err
	}
	path, err := s.write("xrootd.cfg", conf)
	if err != nil {
		return err
	}
	return s.part("xrootd", askXRootD(p.address()), program, "-I", "v4", "-n", "weir", "-c", path)
}

// askXRootD returns a question that is answered when the server at address
// completes the initial handshake of the XRootD protocol.
func askXRootD(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		defer conn.Close() //nolint:errcheck // nothing was written that matters
		if deadline, ok := ctx.Deadline(); ok {
			_ = conn.SetDeadline(deadline)
		} else {
			_ = conn.SetDeadline(time.Now().Add(time.Second))
		}
		hello := binary.BigEndian.AppendUint64(make([]byte, 12, 20), 4<<32|2012)
		if _, err := conn.Write(hello); err != nil {
			return err
		}
		answer := make([]byte, 16) // stream 0, status 0, 8 bytes: version, kind of server
		if _, err := io.ReadFull(conn, answer); err != nil {
			return err
		}
		if !bytes.Equal(answer[:8], []byte{0, 0, 0, 0, 0, 0, 0, 8}) {
			return fmt.Errorf("%s answers the XRootD handshake with % x", address, answer)
		}
		return nil
	}
}
