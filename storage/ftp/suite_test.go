package ftp

import (
	"testing"

	"weir/lab"
	"weir/storage"
	"weir/storage/storagetest"
)

func TestGridFTPPassesTheSuite(t *testing.T) {
	g := lab.StartGridFTP(t, lab.GridFTPConfig{})
	storagetest.Run(t, Driver(), storagetest.TargetOf(t, g.URL, storage.Credentials{}), storagetest.Options{
		Network: true, Lacks: []storagetest.Lack{storagetest.ForeignNames},
	})
}

// Without MLST and MLSD, since with them a plain FTP server is like a GridFTP server.
func TestPlainFTPPassesTheSuite(t *testing.T) {
	f := lab.StartProFTPD(t, lab.ProFTPDConfig{Old: true})
	storagetest.Run(t, Driver(), storagetest.TargetOf(t, f.URL, secret(f)), storagetest.Options{
		Network: true, Few: true, Clients: 20, Lacks: []storagetest.Lack{storagetest.ServerSums},
	})
}

func TestPureFTPdPassesTheSuite(t *testing.T) {
	lab.FullTier(t, "Pure-FTPd")
	s := lab.StartFTP(t, "pure-ftpd")
	storagetest.Run(t, Driver(), storagetest.TargetOf(t, s.URL, secret(s)), storagetest.Options{
		Network: true, Few: true, Clients: 20, Lacks: []storagetest.Lack{storagetest.ServerSums},
	})
}

func TestVsftpdPassesTheSuite(t *testing.T) {
	lab.FullTier(t, "vsftpd")
	s := lab.StartFTP(t, "vsftpd")
	storagetest.Run(t, Driver(), storagetest.TargetOf(t, s.URL, storage.Credentials{}), storagetest.Options{
		Network: true, Few: true, Clients: 20, Lacks: []storagetest.Lack{storagetest.ServerSums},
	})
}

func secret(f *lab.System) storage.Credentials {
	return storage.Credentials{Method: "basic", User: f.User, Password: "secret"}
}
