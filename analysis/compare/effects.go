package compare

// A Factor is a key that a campaign varies, with its levels; the first is what
// others are compared with.
type Factor struct {
	Key    string   `json:"key"`
	Levels []string `json:"levels"`
}

// Effects is what the factors of a campaign do, one number a run.
type Effects struct{}

func effects([]Group, []Factor, *Metric) *Effects { return &Effects{} }

func (e *Effects) sentences(*Metric) []string { return nil }
