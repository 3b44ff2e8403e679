package ftp

import (
	"testing"

	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

func TestGridFTPPassesTheSuite(t *testing.T) {
	g := labtest.Start(t, lab.GridFTPConfig{})
	storagetest.Run(t, Driver(), storagetest.TargetOf(t, g.URL, storage.Credentials{}), storagetest.Options{
		Network: true, Lacks: []storagetest.Lack{storagetest.ForeignNames},
	})
}

// TestPlainFTPPassesTheSuite runs the suite without MLST and MLSD, since with them a plain FTP
// server is like a GridFTP server.
func TestPlainFTPPassesTheSuite(t *testing.T) {
	f := labtest.Start(t, lab.ProFTPDConfig{Old: true})
	storagetest.Run(t, Driver(), storagetest.TargetOf(t, f.URL, secret(f)), storagetest.Options{
		Network: true, Few: true, Clients: 20, Lacks: []storagetest.Lack{storagetest.ServerSums},
	})
}

func TestPureFTPdPassesTheSuite(t *testing.T) {
	tier.Full(t, "Pure-FTPd")
	s := labtest.Start(t, lab.FTPConfig{Server: "pure-ftpd"})
	storagetest.Run(t, Driver(), storagetest.TargetOf(t, s.URL, secret(s)), storagetest.Options{
		Network: true, Few: true, Clients: 20, Lacks: []storagetest.Lack{storagetest.ServerSums},
	})
}

func TestVsftpdPassesTheSuite(t *testing.T) {
	tier.Full(t, "vsftpd")
	s := labtest.Start(t, lab.FTPConfig{Server: "vsftpd"})
	storagetest.Run(t, Driver(), storagetest.TargetOf(t, s.URL, storage.Credentials{}), storagetest.Options{
		Network: true, Few: true, Clients: 20, Lacks: []storagetest.Lack{storagetest.ServerSums},
	})
}

func secret(f *lab.System) storage.Credentials {
	return storage.Credentials{Method: "basic", User: f.User, Password: "secret"}
}
