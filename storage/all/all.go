// Package all is the registry: the only package that imports every driver.
package all

import (
	"weir/storage"
	"weir/storage/command"
	"weir/storage/ftp"
	"weir/storage/local"
	"weir/storage/simulated"
	"weir/storage/webdav"
	"weir/storage/xrootd"
)

// Drivers returns the drivers of this program.
func Drivers() []storage.Driver {
	return []storage.Driver{webdav.Driver(), xrootd.Driver(), ftp.Driver(), local.Driver(), command.Driver(), simulated.Driver()}
}
