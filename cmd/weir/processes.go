package main

import (
	"fmt"
	"strings"

	"weir/monitor"
)

// Open files that this process needs besides its clients' connections, and for
// each worker.
const (
	spareFiles     = 200
	filesPerWorker = 3
)

// processes says how many client processes the run needs so that each may have
// the files open that its clients need.
func (r *session) processes() (int, error) {
	if r.plan.On.Batch != "" { // each worker says for itself how many clients it can be
		_, _, err := monitor.RaiseOpenFiles()
		return 1, err
	}
	soft, _, err := monitor.RaiseOpenFiles()
	if err != nil {
		return 0, err
	}
	most := r.plan.MostClients()
	need := most * filesPerClient(r.plan.Driver, r.plan.Work.InFlight)
	room := int(min(soft, 1<<30)) - spareFiles
	if room < filesPerClient(r.plan.Driver, r.plan.Work.InFlight) {
		return 0, fmt.Errorf("this process may have %d open files and needs %d for %d clients: raise the limit (ulimit -n)", soft, need+spareFiles, most)
	}
	if r.flags.processes < 0 {
		return 0, exit{exitUsage, fmt.Errorf("--processes %d: use 1 or more", r.flags.processes)}
	}
	n := (need + room - 1) / room
	if r.flags.processes > 0 {
		// Who names a number knows whether the service redirects to data servers.
		if certain := most * min(1, filesPerClient(r.plan.Driver, r.plan.Work.InFlight)); certain > r.flags.processes*room || r.plan.Driver == "command" && n > r.flags.processes {
			return 0, exit{exitUsage, fmt.Errorf("%d clients need %d open files; %d processes may have %d each: use --processes %d, or raise the limit (ulimit -n)",
				most, need, r.flags.processes, soft, n)}
		}
		n = r.flags.processes
	}
	if most := room / filesPerWorker; n > most {
		return 0, fmt.Errorf("%d clients in processes of %d open files each need %d processes, and this one can watch %d: raise the limit (ulimit -n)",
			r.plan.MostClients(), soft, n, most)
	}
	if links := len(r.plan.Links); links > 0 { // as many at each site
		return (max(n, 1) + links - 1) / links * links, nil
	}
	if n > 1 && strings.HasPrefix(r.plan.Target, "simulated:") {
		return 1, nil // a simulated service lives in one process and opens nothing
	}
	return max(n, 1), nil
}

// filesPerClient is how many open files a client of a driver needs at most that
// has so many requests in flight.
func filesPerClient(driver string, inFlight int) int {
	switch driver {
	case "simulated":
		return 0
	case "command":
		return 6 // pipes to and from the program, its process, a scratch file
	case "webdav":
		return 2 // the target, and a data server that it redirects to
	case "ftp":
		if inFlight > 1 {
			return 2 + inFlight // the target, a port to listen on, data connections
		}
		return 2 // the target, and a data connection
	case "xrootd":
		return 4 // the same; a kept session goes to several data servers
	}
	return 1
}
