// Package transfer says what moving datasets between sites is made of: the
// states of requests and of their files, why a copy failed, and what the
// coordinator and the agents tell each other.
//
// It does nothing itself. Package transfer/queue keeps requests in a database,
// transfer/schedule chooses sources and limits, transfer/mover copies one
// file, transfer/agent is a site and transfer/coordinator drives them all.
package transfer

// A Status is where a request stands.
type Status string

// The statuses of requests. A request ends as the last six; it ends in the
// same transaction as the last of its files.
const (
	Awaiting  Status = "awaiting approval"
	Resolving Status = "resolving" // its files are being written down
	Running   Status = "running"
	Completed Status = "completed" // every file is at the destination, with the right checksum
	Partial   Status = "partial"   // some files are there, the others are named with their reasons
	Failed    Status = "failed"    // no file is there
	Cancelled Status = "cancelled"
	Rejected  Status = "rejected"
	Expired   Status = "expired" // its time ran out; what had arrived stays
)

// Ended tells whether nothing more will happen to a request.
func (s Status) Ended() bool { return s != Awaiting && s != Resolving && s != Running }

// A State is where one file of a request stands.
type State string

// The states of files. The last four are final.
const (
	NoSource State = "no source" // no site that has it can be reached now; does not stand in anybody's way
	Queued   State = "queued"    // waits for its turn, or until its time to try again
	Leased   State = "leased"    // a mover has it
	Done     State = "done"      // at the destination, size and checksum read back from there
	Skipped  State = "skipped"   // was there already, size and checksum verified
	Lost     State = "failed"
	Dropped  State = "cancelled"
)

// Final tells whether a file's state will not change any more.
func (s State) Final() bool { return s == Done || s == Skipped || s == Lost || s == Dropped }

// An ErrorClass is the kind of failure of one attempt: it decides what is tried next.
type ErrorClass string

// The kinds of failures.
const (
	Transient  ErrorClass = "transient"  // network, a busy server: again, later
	Away       ErrorClass = "away"       // nobody answers at the other end: again when it is back, which uses up no try
	Throttled  ErrorClass = "throttled"  // the server said when to come again
	SourceBad  ErrorClass = "source"     // missing, truncated or spoiled there: another replica
	DestFull   ErrorClass = "full"       // no space at the destination
	Denied     ErrorClass = "denied"     // credentials or paths refused
	Checksum   ErrorClass = "checksum"   // what arrived is not what was sent: again
	AtSite     ErrorClass = "site"       // the site does not let us work, whatever the file: it waits until that is over, which uses up nothing
	Unable     ErrorClass = "unable"     // the ends cannot copy it in this way: another one, or another source
	Permanent  ErrorClass = "permanent"  // no use in trying again
	LeaseLost  ErrorClass = "lease lost" // the mover was not heard of in time
	Occupied   ErrorClass = "occupied"   // another file has this name at the destination: never replaced
	Stopped    ErrorClass = "cancelled"  // the request was cancelled
	Left       ErrorClass = "left"       // the mover was ended in an orderly way: again at once, where it was
	Unverified ErrorClass = "unverified" // the endpoint tells no checksum, and the request requires one
)
