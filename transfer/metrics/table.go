// Package metrics has the metrics of the coordinator for Prometheus: their table, the counters of
// ended requests, files and attempts, and the text format.
package metrics

// Limits of cardinality. Values beyond a limit are added up with the label [Other], or have no
// series if sums make no sense.
const (
	MaxPairs      = 500  // pairs of source and destination
	MaxSites      = 1000 // sites, and destinations of requests
	MaxActivities = 30
)

// Other is the value of labels for all names that are beyond a limit. No site has this name.
const Other = "_other"

// A Type is the type of a metric.
type Type string

// The types.
const (
	Counter   Type = "counter" // from 0 at the start of the coordinator
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// A Metric describes a metric.
type Metric struct {
	Name   string // with prefix and unit
	Type   Type
	Labels []string
	Help   string // a sentence
}

// An ID names a metric in this package: the index in [Table].
type ID int

// The metrics.
const (
	Info ID = iota
	StartTime
	Trouble
	Requests
	RequestsEnded
	Files
	FilesEnded
	Waiting
	OldestWaiting
	QueueSeconds
	Attempts
	ActivityAttempts
	AttemptSeconds
	MovedBytes
	StreamedAttempts
	StreamedBytes
	DoneBytes
	ActivityDoneBytes
	LinkCopies
	LinkLimit
	LinkLimitCause
	LimitChanges
	LinkRate
	LinkSuccess
	Sites
	SiteUp
	SiteRefuses
	SiteFree
	SiteCopies
	SiteLimit
	SiteSlots
	MessagesSent
	MessagesFailed
	MessagesDropped
	MessagesWaiting
	OldestMessage
	metrics // their number
)

// prefix begins all names.
const prefix = "weir_transfer_"

// Table returns all metrics in the order of the page.
func Table() []Metric {
	all := table()
	return all[:]
}

func table() [metrics]Metric {
	pair := func(more ...string) []string { return append([]string{"source", "dest"}, more...) }
	list := [metrics]Metric{
		Info:      {"coordinator_info", Gauge, []string{"version"}, "1 while the coordinator runs."},
		StartTime: {"start_time_seconds", Gauge, nil, "When the coordinator started, in Unix time."},
		Trouble:   {"trouble", Gauge, []string{"what"}, "1 for each part of the coordinator that does not work now."},
		Requests:  {"requests", Gauge, []string{"dest", "status"}, "Requests that have not ended."},
		RequestsEnded: {"requests_ended_total", Counter, []string{"status"},
			"Requests that ended, by final status. One that is retried ends again."},
		Files:      {"files", Gauge, []string{"dest", "state"}, "Files of requests that have not ended."},
		FilesEnded: {"files_ended_total", Counter, []string{"dest", "state"}, "Files that ended, by final state."},
		Waiting: {"waiting_files", Gauge, []string{"dest", "activity"},
			"Length of the queue: files that wait, also those without an available source."},
		OldestWaiting: {"oldest_waiting_seconds", Gauge, []string{"dest", "activity"},
			"Time since the beginning of the oldest request with waiting files; 0 if no file waits."},
		QueueSeconds: {"queue_seconds", Histogram, []string{"activity"},
			"Time of files in the queue: from the beginning of their request to their first attempt."},
		Attempts: {"attempts_total", Counter, pair("outcome", "class"),
			"Attempts that ended. Outcome is done, skipped (the file was there), failed or cancelled; failed ones have a class of error."},
		ActivityAttempts: {"activity_attempts_total", Counter, []string{"activity", "outcome", "class"}, "Attempts that ended, by activity."},
		AttemptSeconds:   {"attempt_seconds", Histogram, pair(), "Duration of attempts that transferred a file, its verification included."},
		MovedBytes:       {"moved_bytes_total", Counter, pair(), "Payload transferred, counted while it moves."},
		StreamedAttempts: {"streamed_attempts_total", Counter, pair("outcome"),
			"Attempts whose bytes passed through the coordinator, since the endpoints cannot copy from each other."},
		StreamedBytes: {"streamed_bytes_total", Counter, pair(), "Payload that passed through the coordinator."},
		DoneBytes:     {"done_bytes_total", Counter, pair(), "Size of the files that were transferred and verified."},
		ActivityDoneBytes: {"activity_done_bytes_total", Counter, []string{"activity"},
			"Size of the files that were transferred and verified, by activity."},
		LinkCopies: {"link_copies", Gauge, pair(), "Transfers that are running or wait at their mover."},
		LinkLimit:  {"link_limit", Gauge, pair(), "Limit of concurrent transfers of a link."},
		LinkLimitCause: {"link_limit_cause", Gauge, pair("cause"),
			"1 for the cause of the limit: start, fixed, failures, trial, gain or no gain."},
		LimitChanges: {"link_limit_changes_total", Counter, pair("direction", "cause"),
			"Changes of the limit of a link, up or down, by cause. /api/v1/links/changes has each with its reason."},
		LinkRate:    {"link_bytes_per_second", Gauge, pair(), "Throughput of a link in the last seconds."},
		LinkSuccess: {"link_success_ratio", Gauge, pair(), "Ratio of recent transfers of a link that succeeded."},
		Sites:       {"sites", Gauge, []string{"kind", "state"}, "Sites that are up or down, by kind, all of them."},
		SiteUp:      {"site_up", Gauge, []string{"site", "kind"}, "Whether a site can be reached."},
		SiteRefuses: {"site_refuses", Gauge, []string{"site"},
			"Whether a site refuses every request (credentials, storage), so that its files wait."},
		SiteFree:   {"site_free_bytes", Gauge, []string{"site"}, "Free space of a site, where it is known."},
		SiteCopies: {"site_copies", Gauge, []string{"site"}, "Transfers of a site, in and out."},
		SiteLimit:  {"site_limit", Gauge, []string{"site"}, "Limit of concurrent transfers of a site, where one is set."},
		SiteSlots:  {"site_slots", Gauge, []string{"site"}, "Concurrent transfers that the agent of a site makes at most."},
		MessagesSent: {"messages_sent_total", Counter, []string{"kind"},
			"Messages about files of jobs that the broker has confirmed: start, complete or state."},
		MessagesFailed: {"message_failures_total", Counter, nil, "Attempts to send messages to the broker that failed. They are repeated."},
		MessagesDropped: {"messages_dropped_total", Counter, nil,
			"Changes of files that were dropped, since the broker did not take them in time."},
		MessagesWaiting: {"messages_waiting", Gauge, nil, "Changes of files whose messages the broker has not confirmed."},
		OldestMessage:   {"oldest_message_seconds", Gauge, nil, "Age of the oldest of these changes; 0 if there is none."},
	}
	for i := range list {
		list[i].Name = prefix + list[i].Name
	}
	return list
}

// bounds returns the upper bounds of the buckets of histograms, in seconds.
func bounds() []float64 {
	return []float64{0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800, 7200, 86400}
}
