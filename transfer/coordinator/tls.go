package coordinator

import (
	"embed"
	"fmt"
	"io/fs"
	"net"
)

//go:embed schema/*.sql
var tables embed.FS

// schema are the files that make the coordinator's tables.
func schema() fs.FS {
	files, err := fs.Sub(tables, "schema")
	if err != nil {
		return tables // it is embedded: there is no error
	}
	return files
}

// loopback refuses addresses that are not of this machine's loopback.
func loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s: without TLS only addresses of this machine's loopback are listened on, such as 127.0.0.1:9443", address)
}
