// Package transfer defines the data of transfers: states of requests and of their files, error
// classes, the API of the coordinator (api.go) and its protocol with agents (protocol.go).
//
// It has no behavior. Package transfer/queue keeps requests in a database, transfer/schedule
// chooses sources and limits, transfer/mover transfers one file, transfer/agent runs a site, and
// transfer/coordinator controls them.
package transfer

import "strings"

// A Status is the state of a request.
type Status string

// The statuses of requests. The last six are final; a request becomes final in the transaction
// that ends its last file.
const (
	Awaiting  Status = "awaiting approval"
	Resolving Status = "resolving" // its files are being added to the queue
	Running   Status = "running"
	Completed Status = "completed" // every file is at the destination with the right checksum
	Partial   Status = "partial"   // some files are there; the others are listed with reasons
	Failed    Status = "failed"    // no file is there
	Cancelled Status = "cancelled"
	Rejected  Status = "rejected"
	Expired   Status = "expired" // files that had arrived stay
)

// Ended reports whether the status is final.
func (s Status) Ended() bool { return s != Awaiting && s != Resolving && s != Running }

// A State is the state of one file of a request.
type State string

// The states of files. The last four are final.
const (
	NoSource      State = "no source" // no site that has it is available; it blocks no other file
	Queued        State = "queued"
	Leased        State = "leased"  // a mover has it
	Done          State = "done"    // at the destination; size and checksum were read back from there
	Skipped       State = "skipped" // it was there before; size and checksum were verified
	FileFailed    State = "failed"
	FileCancelled State = "cancelled"
)

// Final reports whether the state is final.
func (s State) Final() bool {
	return s == Done || s == Skipped || s == FileFailed || s == FileCancelled
}

// An ErrorClass is the kind of failure of an attempt. It determines the next step.
type ErrorClass string

// The error classes. docs/transfer.md has the table of retries.
const (
	Transient        ErrorClass = "transient"  // network error or busy server
	Unreachable      ErrorClass = "away"       // no connection to the other end; retried when it is back, without using a try
	Throttled        ErrorClass = "throttled"  // the server set the time of the next try
	SourceBad        ErrorClass = "source"     // the replica is missing, truncated or corrupt
	DestFull         ErrorClass = "full"       // no space at the destination
	Denied           ErrorClass = "denied"     // credentials or paths refused
	Checksum         ErrorClass = "checksum"   // corrupted in transit
	SiteRefuses      ErrorClass = "site"       // the site refuses every file; retried when that is over, without using a try
	ModeUnsupported  ErrorClass = "unable"     // the two ends do not support this mode
	Permanent        ErrorClass = "permanent"  // another try would fail
	LeaseLost        ErrorClass = "lease lost" // the mover did not report in time
	Occupied         ErrorClass = "occupied"   // the destination has another file of this name, which is never replaced
	RequestCancelled ErrorClass = "cancelled"
	HopFailed        ErrorClass = "hop"        // the file before it in its job failed, so it was not tried
	MoverStopped     ErrorClass = "left"       // the mover was shut down; the file is retried at once and resumes
	Unverified       ErrorClass = "unverified" // the endpoint has no checksum, and the request requires one
)

// A Mode determines the side that transfers the bytes of a file.
type Mode string

// The modes.
const (
	Pull  Mode = "pull"  // the destination's agent reads from the source
	Push  Mode = "push"  // the source's agent writes to the destination
	Third Mode = "third" // the coordinator has one of two HTTP endpoints copy (HTTP-TPC)
	// of attempts in the mode third whose bytes passed through the coordinator, since the endpoints cannot copy from each other
	Streamed Mode = "streamed"
	Delete   Mode = "delete" // no transfer: the coordinator removes a file and verifies that it is gone
	Check    Mode = "check"  // no transfer: the destination verifies a file that it should have
)

// Modes returns the modes that a request can have.
func Modes() []Mode { return []Mode{Pull, Push, Third} }

// Mover returns the site whose agent transfers the bytes between two sites, or "" if no agent
// transfers them.
func (m Mode) Mover(source, dest string) string {
	switch m {
	case Pull, Check:
		return dest
	case Push:
		return source
	}
	return ""
}

// A Stage is the current step of an attempt at a file.
type Stage string

// The stages.
const (
	Moving     Stage = "moving"
	Verifying  Stage = "verifying"
	Committing Stage = "committing"
)

// rolePrefix begins the scopes of roles.
const rolePrefix = "weir."

// RoleOf returns the role with a name, as in submit. The name may also be the scope, as in weir.submit.
func RoleOf(name string) string { return rolePrefix + strings.TrimPrefix(name, rolePrefix) }

// RoleNames returns the names of roles, which are shown to users.
func RoleNames(roles ...string) string {
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = strings.TrimPrefix(role, rolePrefix)
	}
	return strings.Join(names, ", ")
}
