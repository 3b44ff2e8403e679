// Package dashboard serves the live page: it follows a run directory while its
// run goes on, as any other program could, and shows it to browsers. It never
// writes, and nothing that a browser does can hold up the run.
//
// The files: follow reads what was appended into the compact columns (track) of
// history, with steps, events and hosts; analyst has the run analyzed now and then; message and stream bring
// to each page what it lacks; hub finds the runs of a campaign; guard says who
// may look; server and pages answer requests.
package dashboard

import (
	"errors"
	"log/slog"
	"time"
)

// Bounds that keep a page from costing more than it is worth.
const (
	mostPages  = 32              // that are served at once
	mostPast   = 4               // runs besides the newest that are kept in memory
	mostRows   = 4 * 3600        // of a run; beyond, neighbors are put together
	mostStores = 100             // data servers with a line of their own
	mostHosts  = 1000            // hosts with a line of their own
	mostEvents = 300             // that are kept
	pollEvery  = time.Second / 4 // how often the run directory is looked at
	settle     = 20 * time.Millisecond
	beatEvery  = 5 * time.Second  // a page that hears nothing for longer takes the connection for lost
	writeWait  = 15 * time.Second // for a browser to take what it is sent
	keepPast   = time.Minute      // after the last page has left it
)

// defaultPort is tried first, and then the ones after it.
const defaultPort = 9347

// errGone tells that a browser asked for a run that is not there.
var errGone = errors.New("there is no such run here (any more)")

// Config says what is shown, and to whom.
type Config struct {
	// Dir is a run directory, a campaign's folder, or a folder with runs, whose
	// newest is shown. It need not be there yet; if it is empty, [Server.Show]
	// tells it later.
	Dir string

	// Listen is HOST:PORT. Without a host it is every address of this machine.
	// If it is empty, it is the first of port 9347 and the ports after it on
	// the loopback interface that is free.
	Listen string

	// Token is what a browser must know. If it is empty, everybody on this
	// machine may look, and elsewhere one is made up.
	Token string

	Log *slog.Logger // called with problems; nil: they are dropped
}
