package fts

import (
	"encoding/json"
	"io"
	"maps"
	"math"
	"slices"
)

// SELimits are the limits of concurrent copies from and to a storage element; 0: only its links are
// limited.
type SELimits struct {
	In  int `json:"in"`
	Out int `json:"out"`
}

// LinkLimits bound the concurrent copies from a storage element to another storage element; * is
// any.
type LinkLimits struct {
	Source string `json:"source"`
	Dest   string `json:"dest"`
	Min    int    `json:"min"`
	Max    int    `json:"max"`
}

// Shares are weights of activities.
type Shares struct {
	Share  map[string]float64 `json:"share"`
	Active bool               `json:"active"`
}

// Global has the defaults of jobs that do not set these parameters; 0: the default of weir.
type Global struct {
	Retry   int   `json:"retry"`
	InQueue int64 `json:"max_time_queue"` // hours
	Timeout int64 `json:"global_timeout"` // seconds of an attempt
}

// mostActive is the largest limit of concurrent copies.
const mostActive = 10_000

// refuseOthers returns an error for the keys of a configuration that are on and have no meaning.
func refuseOthers(in map[string]any, meaningless map[string]string, known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if slices.Contains(known, name) {
			continue
		}
		text, err := json.Marshal(in[name])
		why, none := meaningless[name]
		switch {
		case !none:
			return bad("%.100q is not a setting", name)
		case err == nil && string(text) != "null" && string(text) != `"off"` && !off(text):
			return bad("%s: %s", name, why)
		}
	}
	return nil
}

// integers reads integers of a configuration; the values of absent or null keys stay unchanged.
func integers(in map[string]any, least, most int64, to map[string]*int64) error {
	for name, n := range to {
		if in[name] == nil {
			continue
		}
		value, ok := Integer(in[name], least, most)
		if !ok {
			return bad("%s: expected an integer from %d to %d", name, least, most)
		}
		*n = value
	}
	return nil
}

// ReadSELimits reads se_info; limits that it does not contain stay unchanged.
func ReadSELimits(in map[string]any, was SELimits) (SELimits, error) {
	const rate = "weir limits copies at once, not throughput"
	const endpoints = "the endpoints decide it"
	err := refuseOthers(in, map[string]string{
		"inbound_max_throughput": rate, "outbound_max_throughput": rate, "udt": "GridFTP is not supported", "ipv6": endpoints,
		"se_metadata": "weir keeps no metadata of storage elements", "site": "use weir site add to name a site",
		"debug_level": "the log of the coordinator has one level", "eviction": "copies on disk are released when they were read",
		"skip_eviction": "copies on disk are released when they were read", "tpc_support": "weir finds out whether an endpoint pulls or pushes",
		"overwrite_disk_enabled": "overwrite_when_only_on_disk is not supported",
	}, "inbound_max_active", "outbound_max_active")
	if err != nil {
		return was, err
	}
	inbound, outbound := int64(was.In), int64(was.Out)
	err = integers(in, 0, mostActive, map[string]*int64{"inbound_max_active": &inbound, "outbound_max_active": &outbound})
	return SELimits{int(inbound), int(outbound)}, err
}

// Answer returns the limits with FTS's fields.
func (s SELimits) Answer() map[string]any {
	m := map[string]any{"inbound_max_active": s.In, "outbound_max_active": s.Out}
	for _, name := range []string{"inbound_max_throughput", "outbound_max_throughput", "udt", "ipv6", "se_metadata", "site", "debug_level",
		"skip_eviction", "tpc_support", "overwrite_disk_enabled"} {
		m[name] = nil
	}
	return m
}

// ReadLinkLimits reads the limit of a link and its name.
func ReadLinkLimits(in map[string]any) (name string, l LinkLimits, err error) {
	err = refuseOthers(in, map[string]string{
		"optimizer_mode":  "weir chooses the number of copies by what they gain",
		"tcp_buffer_size": "the buffers of a copy belong to the endpoints", "nostreams": "jobs set it",
		"no_delegation": "credentials belong to jobs",
	}, "symbolicname", "source", "destination", "min_active", "max_active")
	if err != nil {
		return "", l, err
	}
	l = LinkLimits{Source: "*", Dest: "*"}
	for key, to := range map[string]*string{"symbolicname": &name, "source": &l.Source, "destination": &l.Dest} {
		text, ok := in[key].(string)
		switch {
		case in[key] == nil:
		case !ok || len(text) > 255:
			return "", l, bad("%s: expected a text of at most 255 bytes", key)
		default:
			*to = text
		}
	}
	least, most := int64(2), int64(2) // as in FTS
	err = integers(in, 1, mostActive, map[string]*int64{"min_active": &least, "max_active": &most})
	switch {
	case err != nil:
		return "", l, err
	case name == "":
		return "", l, bad("Missing symbolicname")
	case l.Source == "" || l.Dest == "":
		return "", l, bad("Missing source and/or destination")
	case least > most:
		return "", l, bad("max_active is lower than min_active")
	}
	l.Min, l.Max = int(least), int(most)
	return name, l, nil
}

// Answer returns the limit with FTS's fields.
func (l LinkLimits) Answer(name string) map[string]any {
	return map[string]any{"symbolicname": name, "source": l.Source, "destination": l.Dest, "min_active": l.Min, "max_active": l.Max,
		"optimizer_mode": nil, "tcp_buffer_size": nil, "nostreams": nil, "no_delegation": false}
}

// ReadGlobal reads the global configuration; settings that it does not contain stay unchanged.
func ReadGlobal(in map[string]any, was Global) (Global, error) {
	err := refuseOthers(in, map[string]string{
		"sec_per_mb": "weir ends copies that move nothing", "no_streaming": "it is a matter of the endpoints",
		"show_user_dn": "the log names users",
	}, "vo_name", "retry", "max_time_queue", "global_timeout")
	if err != nil {
		return was, err
	}
	if vo := in["vo_name"]; vo != nil && vo != "" && vo != "*" {
		return was, bad("vo_name: the configuration is for all virtual organizations: leave it out, or use *")
	}
	retry := int64(was.Retry)
	err = integers(in, 0, 99, map[string]*int64{"retry": &retry})
	if err == nil {
		err = integers(in, 0, 1<<31, map[string]*int64{"global_timeout": &was.Timeout})
	}
	if err == nil {
		err = integers(in, 0, 24*365, map[string]*int64{"max_time_queue": &was.InQueue})
	}
	was.Retry = int(retry)
	return was, err
}

// Answer returns the configuration with FTS's fields.
func (g Global) Answer() map[string]any {
	return map[string]any{"vo_name": "*", "retry": g.Retry, "max_time_queue": g.InQueue, "global_timeout": g.Timeout, "sec_per_mb": 0,
		"no_streaming": false, "show_user_dn": false}
}

// ReadShares reads weights of activities: an object, or a list of objects with one activity each, as FTS does.
func ReadShares(body io.Reader) (vo string, s Shares, err error) {
	var in struct {
		VO     string          `json:"vo"`
		Share  json.RawMessage `json:"share"`
		Active *bool           `json:"active"`
	}
	if err := json.NewDecoder(body).Decode(&in); err != nil {
		return "", s, bad("Badly formatted JSON request")
	}
	s = Shares{map[string]float64{}, in.Active == nil || *in.Active}
	switch {
	case in.VO == "":
		return "", s, bad("Missing VO")
	case null(in.Share):
		return "", s, bad("Missing share")
	}
	list := []map[string]float64{}
	if json.Unmarshal(in.Share, &s.Share) != nil && json.Unmarshal(in.Share, &list) != nil {
		return "", s, bad("share is expected to be a single JSON object with activity names and respective weights")
	}
	for _, one := range list {
		maps.Copy(s.Share, one)
	}
	for name, weight := range s.Share {
		if len(name) > 100 || weight <= 0 || weight > 1e6 || math.IsNaN(weight) || len(s.Share) > 1000 {
			return "", s, bad("share: expected at most 1000 activities of at most 100 bytes, with weights above 0, up to 1000000")
		}
	}
	return in.VO, s, nil
}
