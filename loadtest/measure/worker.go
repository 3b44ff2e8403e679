package measure

// States of a worker, in Worker.State.
const (
	Came   = "came"   // it is there, and takes part from the next step on
	Left   = "left"   // it has completed all of its steps
	Lost   = "lost"   // it was there and is no more; its clients are missing from then on
	Absent = "absent" // the load began without it
	Held   = "held"   // the batch system will not start it; the event's text has the reason
	Failed = "failed" // its job ended before it was there, or was removed
	Stages = "stages" // it reports the folder of its jobs' copies of files
)

// A Worker is one of many processes, on other machines, that have the clients of a run. Unknown
// fields are zero.
type Worker struct {
	Name  string `json:"name"`           // unique in the run: a worker that returns has a new name
	State string `json:"state"`          // Came, Left, Lost, Absent, Held, Failed or Stages
	Host  string `json:"host,omitempty"` // its machine
	Job   string `json:"job,omitempty"`  // name in its batch system

	Clients int `json:"clients,omitempty"` // of Came: the most that it can be; of Left and Lost: that it was last
	// Of Came: the time by which the worker's clock is ahead of the controller's, and the largest
	// error of that. Its measurements are reported in the controller's time. A Doubt of zero: the
	// clocks were not compared.
	Offset float64 `json:"offset_seconds,omitempty"`
	Doubt  float64 `json:"doubt_seconds,omitempty"`
	// Of Left and Lost: the number of seconds of the run that it has reported.
	Seconds int `json:"reported_seconds,omitempty"`
	// Of Lost: the time before the event for which it had reported nothing.
	Silent float64 `json:"silent_seconds,omitempty"`
	// Of Stages.
	Scratch *Scratch `json:"scratch,omitempty"`
}

// Scratch describes the folder for the jobs' copies of files.
type Scratch struct {
	Folder string `json:"folder"`
	// Block device, as the kernel calls it: vda1; empty: no device, or not known.
	Device     string `json:"device,omitempty"`
	Filesystem string `json:"filesystem,omitempty"` // ext4, xfs, tmpfs ...
	// Bytes that could still be written before the load began; 0: no space, or not known.
	Free int64 `json:"free_bytes,omitempty"`
}
