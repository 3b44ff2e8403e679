package run

import (
	"fmt"
	"math"

	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
	"weir/storage/all"
)

// Open files that a process needs besides the files of its clients.
const (
	SpareFiles     = 200
	filesPerWorker = 3 // for each worker that it starts
)

// processes returns how many client processes the run needs so that the limit of
// open files allows each of them its clients.
func (r *session) processes() (int, error) {
	soft, _, err := monitor.RaiseOpenFiles()
	if err != nil || r.Plan.On.Batch != "" { // each worker reports its own limit of clients
		return 1, err
	}
	driver := storage.DriverNamed(r.drivers, r.Plan.Driver)
	most, files := r.Plan.MostClients(), driver.ClientFiles(r.Plan.InFlight())
	need, room := most*files, int(min(soft, 1<<30))-SpareFiles
	if room < files {
		return 0, fmt.Errorf("this process may have %d open files and needs %d for %d clients: raise the limit (ulimit -n)", soft, need+
			SpareFiles, most)
	}
	if r.Processes < 0 {
		return 0, usage(fmt.Errorf("--processes %d: use 1 or more", r.Processes))
	}
	n := (need + room - 1) / room
	if r.Processes > 0 {
		// A user who gives a number can judge whether the service redirects to data servers.
		if certain := most * min(1, files); certain > r.Processes*room || driver.External && n > r.Processes {
			return 0, usage(fmt.Errorf("%d clients need %d open files; %d processes may have %d each: use --processes %d, "+
				"or raise the limit (ulimit -n)", most, need, r.Processes, soft, n))
		}
		n = r.Processes
	}
	if watched := room / filesPerWorker; n > watched {
		return 0, fmt.Errorf("%d clients in processes of %d open files each need %d processes, and this one can watch %d: "+
			"raise the limit (ulimit -n)", most, soft, n, watched)
	}
	if sites := len(r.Plan.Links.Sites()); sites > 0 { // as many at each
		return (max(n, 1) + sites - 1) / sites * sites, nil
	}
	if p := len(r.Plan.Populations); p > 0 { // as many of each
		return (max(n, 1) + p - 1) / p * p, nil
	}
	if files == 0 {
		return 1, nil // the service is part of one process
	}
	return max(n, 1), nil
}

// MostClients returns the largest number of clients of the plan's target on this machine, and the
// limit behind it.
func MostClients(plan *scenario.Plan) (most int, why string) {
	if plan.On.Batch != "" {
		return math.MaxInt32, ""
	}
	soft, _, err := monitor.RaiseOpenFiles()
	driver := storage.DriverNamed(all.Drivers(), plan.Driver)
	files := driver.ClientFiles(plan.InFlight())
	if err != nil || files == 0 {
		return math.MaxInt32, ""
	}
	room := int(min(soft, 1<<20)) - SpareFiles
	most, why = max(room, 0)*(max(room, 0)/filesPerWorker)/files, fmt.Sprintf("%d open files a process", soft)
	if driver.Ports {
		e := monitor.About()
		if ports := int(e.PortHigh - e.PortLow + 1); ports > 1 && plan.Work.Session != workload.SharedSession && ports < most {
			most, why = ports, fmt.Sprintf("it has %d ports for connections to one address (net.ipv4.ip_local_port_range)", ports)
		}
	}
	return max(most, 1), why
}
