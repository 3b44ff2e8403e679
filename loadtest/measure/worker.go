package measure

// What can become of a worker, as it stands in Worker.State.
const (
	Came   = "came"   // it is there, and takes part from the next step on
	Left   = "left"   // it has done all that it was asked for
	Lost   = "lost"   // it was there and is no more; its clients are missing from then on
	Absent = "absent" // the load began without it
	Held   = "held"   // the batch system will not start it; the event's text says why
	Failed = "failed" // its job ended before it was there, or was removed
	Stages = "stages" // it says where its jobs put their copies of files
)

// A Worker is one of many processes, on other machines, that a run's clients
// are in. What is not known is zero.
type Worker struct {
	Name  string `json:"name"`           // unique in the run: one that comes again has a new one
	State string `json:"state"`          // Came, Left, Lost, Absent, Held, Failed or Stages
	Host  string `json:"host,omitempty"` // its machine
	Job   string `json:"job,omitempty"`  // as its batch system calls it

	Clients int `json:"clients,omitempty"` // of Came: the most that it can be; of Left and Lost: that it was last
	// Of Came: how far the worker's clock is ahead of the controller's, and the
	// most by which that can be wrong. What it measures is reported in the
	// controller's time. A Doubt of zero: the clocks were not compared.
	Offset float64 `json:"offset_seconds,omitempty"`
	Doubt  float64 `json:"doubt_seconds,omitempty"`
	// Of Left and Lost: how many seconds of the run it has reported.
	Seconds int `json:"reported_seconds,omitempty"`
	// Of Lost: for how long before the event it had reported nothing.
	Silent float64 `json:"silent_seconds,omitempty"`
	// Of Stages.
	Scratch *Scratch `json:"scratch,omitempty"`
}

// Scratch says where jobs put their copies of files.
type Scratch struct {
	Folder     string `json:"folder"`
	Device     string `json:"device,omitempty"`     // block device, as the kernel calls it: vda1; empty: it lies on none, or that is not known
	Filesystem string `json:"filesystem,omitempty"` // ext4, xfs, tmpfs ...
	Free       int64  `json:"free_bytes,omitempty"` // bytes that could still be written before the load began; 0: none, or not known
}
