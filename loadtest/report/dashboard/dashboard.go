// Package dashboard serves the live page: it follows a run directory during the run, as any other
// program could, and shows it to browsers. It never writes, and no action of a browser can hold up
// the run.
//
// The files: follow reads the appended lines into the compact columns (track) of history, with
// steps, events and hosts; analyst analyzes the run at intervals; message and stream send to each
// page the data that it lacks; hub finds the runs of a campaign; guard controls access; server and
// pages handle requests.
package dashboard

import (
	"errors"
	"log/slog"
	"time"
)

// Bounds that limit the cost of a page.
const (
	mostPages  = 32              // that are served at the same time
	mostPast   = 4               // runs besides the newest that are kept in memory
	mostRows   = 4 * 3600        // of a run; beyond, neighbors are combined
	mostStores = 100             // data servers with a line of their own
	mostHosts  = 1000            // hosts with a line of their own
	mostEvents = 300             // that are kept
	pollEvery  = time.Second / 4 // interval at which the run directory is checked
	settle     = 20 * time.Millisecond
	beatEvery  = 5 * time.Second  // a page that receives nothing for longer assumes that the connection is lost
	writeWait  = 15 * time.Second // for a browser to accept a message
	keepPast   = time.Minute      // after the last page has left the run
)

// defaultPort is tried first, and then the following ports.
const defaultPort = 9347

// errGone is the error for a browser that requests a run that does not exist.
var errGone = errors.New("there is no such run here (any more)")

// Config specifies the run that is shown, and access to it.
type Config struct {
	// Dir is a run directory, a campaign's folder, or a folder with runs, of which the newest is
	// shown. It need not exist yet; if it is empty, [Server.Show] sets it later.
	Dir string

	// Listen is HOST:PORT. Without a host it means every address of this machine. If it is empty,
	// the server listens on the loopback interface, at the first free port from 9347 on.
	Listen string

	// Token is the secret that a browser must present. If it is empty, all users of this machine
	// have access, and a random token is created if the address can be reached from other machines.
	Token string

	Log *slog.Logger // receives problems; nil: they are dropped
}
