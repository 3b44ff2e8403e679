package export

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"weir/internal/redact"
	"weir/storage"
)

// A Receiver is where a run's numbers are sent.
type Receiver struct {
	URL  *url.URL
	Auth storage.Auth // methods none, token, basic and x509; names of files, never secrets
	kind string       // remoteWrite or influxDB
}

const (
	remoteWrite = "Prometheus remote write"
	influxDB    = "InfluxDB"
)

// RemoteWrite is a receiver of Prometheus remote write 1.0, such as
// http://host:9090/api/v1/write.
func RemoteWrite(address string, auth storage.Auth) (Receiver, error) {
	u, err := parse(address, "http://host:9090/api/v1/write")
	if err == nil && strings.Trim(u.Path, "/") == "" {
		err = fmt.Errorf("%s: say the path, too; Prometheus has /api/v1/write (and takes it when started with --web.enable-remote-write-receiver)", redact.URL(u.String()))
	}
	return Receiver{URL: u, Auth: auth, kind: remoteWrite}, err
}

// Influx is the write address of InfluxDB: http://host:8086/write?db=DATABASE
// of 1.x, http://host:8086/api/v2/write?org=ORG&bucket=BUCKET of 2.x.
func Influx(address string, auth storage.Auth) (Receiver, error) {
	u, err := parse(address, "http://host:8086/write?db=DATABASE")
	if err != nil {
		return Receiver{}, err
	}
	q := u.Query()
	switch {
	case strings.HasSuffix(u.Path, "/api/v2/write") && q.Get("bucket") != "":
	case strings.HasSuffix(u.Path, "/write") && q.Get("db") != "":
	default:
		return Receiver{}, fmt.Errorf("%s: use http://host:8086/write?db=DATABASE (InfluxDB 1.x) or http://host:8086/api/v2/write?org=ORG&bucket=BUCKET (2.x)", redact.URL(u.String()))
	}
	if q.Has("u") || q.Has("p") {
		return Receiver{}, errors.New("leave user and password out of the address: give the password in a file")
	}
	q.Set("precision", "ns")
	u.RawQuery = q.Encode()
	return Receiver{URL: u, Auth: auth, kind: influxDB}, nil
}

// parse takes an address of http or https without secrets in it.
func parse(address, like string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("not an address such as %s", like) // err would print a password
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%s: use an address such as %s", redact.URL(u.String()), like)
	}
	if u.User != nil {
		return nil, fmt.Errorf("%s: leave user and password out of the address: give the password in a file", redact.URL(u.String()))
	}
	return u, nil
}

// encoder returns a new encoder of what the receiver understands.
func (t Receiver) encoder() encoder {
	if t.kind == influxDB {
		return newInflux(1 << 20) // InfluxDB advises 5,000 lines
	}
	return newRemote(5000)
}

// String names the receiver for people.
func (t Receiver) String() string { return t.kind + " at " + redact.URL(t.URL.String()) }

// Flag is the option of weir that names such a receiver.
func (t Receiver) Flag() string {
	if t.kind == influxDB {
		return "--influx"
	}
	return "--remote-write"
}

// Check reads the credentials, to tell early what is wrong with them.
func (t Receiver) Check() error {
	c, err := newCourier(t)
	if err == nil {
		c.close()
	}
	return err
}

// Once tells that the receiver takes no value that is older than what it has.
func (t Receiver) Once() bool { return t.kind == remoteWrite }
