package export

import "weir/loadtest/results"

// linkRows returns the links of data challenges: at most seven series for each link.
func linkRows() shape[results.LinkInterval] {
	type link = results.LinkInterval
	s := shape[link]{group: "link", labels: []string{"source", "destination"}}
	s.gauge("link_target_bytes_per_second", "Target rate of the link, mean over the interval.", func(v *link) float64 { return v.Target })
	s.counter("link_moved_bytes", "Payload that copies of the link moved.", func(v *link) float64 { return float64(v.Moved) })
	s.rareCounter("link_wrong_bytes", "Of the payload moved, that of complete copies whose verification failed.",
		func(v *link) float64 { return float64(v.Wrong) })
	s.gauge("link_in_flight", "Copies that were requested and had not ended, mean over the interval.",
		func(v *link) float64 { return v.Flight })
	s.gauge("link_queued", "Of the copies in flight those that the transfer service had not begun.",
		func(v *link) float64 { return v.Queued })
	s.counter("link_copies_done", "Copies that arrived.", func(v *link) float64 { return float64(v.Done) })
	s.rareCounter("link_copies_failed", "Copies that failed.", func(v *link) float64 { return float64(v.Failed) })
	return s
}
