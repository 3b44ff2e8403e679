package measure

// A Site is what the clients at one end of several emulated links did in an
// interval, where they run jobs.
type Site struct {
	Moved int64   `json:"moved_bytes"`
	CPU   float64 `json:"client_cpu_seconds,omitempty"`

	Jobs
}

// At notes that all of v was seen at a site, if jobs took part in it. What was
// noted of sites before is forgotten.
func (v *Interval) At(site string) {
	v.Sites = nil
	if v.Any() {
		v.addSite(site, &Site{Moved: v.Moved, CPU: v.CPU, Jobs: v.Jobs})
	}
}

// Interval returns what of v was seen at the site, one of v's. It shares the
// histogram of s.
func (s *Site) Interval(v *Interval) Interval {
	return Interval{Start: v.Start, Seconds: v.Seconds, Step: v.Step, Phase: v.Phase, Kind: v.Kind, Server: v.Server, Moved: s.Moved, CPU: s.CPU, Jobs: s.Jobs}
}

// addSite adds what other clients at a site did. v has a copy of o then.
func (v *Interval) addSite(name string, o *Site) {
	if v.Sites == nil {
		v.Sites = map[string]*Site{}
	}
	s := v.Sites[name]
	if s == nil {
		s = &Site{}
		v.Sites[name] = s
	}
	s.Moved += o.Moved
	s.CPU += o.CPU
	s.Add(&o.Jobs)
}
