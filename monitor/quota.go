package monitor

import (
	"bytes"
	"path"
	"strconv"
	"strings"
)

// A Quota is the CPU quota of the control groups of this process. The parents of a group limit it
// as well.
type Quota struct {
	Cores     float64 `json:"cores"`             // of the smallest quota, in CPU seconds a second
	Group     string  `json:"group"`             // that has it
	Periods   int64   `json:"periods"`           // of the span, in which a process of that group was runnable
	Throttled int64   `json:"throttled_periods"` // of these: the quota was used up before their end
	Lost      float64 `json:"throttled_seconds"` // summed over the cores on which processes then waited
}

// A cpuGroup is a control group with a controller of the CPU, as a folder.
type cpuGroup struct {
	folder, name string
	unified      bool // version 2
}

// cpuGroups returns the control groups whose quotas apply to this process, its own group first, as
// far as they are mounted here: inside a container the groups above its own group are not visible.
func cpuGroups(f *procFS) (all []cpuGroup) {
	own := map[bool]string{} // by whether it is of version 2
	b, err := f.readOnce(f.proc + "/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) { // such as 4:cpu,cpuacct:/job and 0::/job
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		if unified := id == "0" && controllers == ""; ok && (unified || hasWord(controllers, "cpu")) {
			own[unified] = group
		}
	}
	mounts, err := f.readOnce(f.proc + "/self/mountinfo")
	if err != nil {
		return nil
	}
	for line := range bytes.SplitSeq(mounts, []byte{'\n'}) {
		at, root, unified, ok := cpuMount(string(line))
		group, member := own[unified]
		if !ok || !member {
			continue
		}
		below, inside := strings.CutPrefix(path.Clean(group), strings.TrimSuffix(root, "/"))
		if !inside || below != "" && below[0] != '/' {
			below = "" // the group is not below the mounted group, so the mounted group is its own
		}
		for below = path.Clean("/" + below); ; below = path.Dir(below) {
			all = append(all, cpuGroup{path.Join(at, below), path.Join(root, below), unified})
			if below == "/" {
				break
			}
		}
		delete(own, unified) // further mounts show the same
	}
	return all
}

// cpuMount reads a line of /proc/self/mountinfo (proc_pid_mountinfo(5)): numbers, the root of the mount, the mount point, options and
// optional fields, a dash, the type, the source and options of the file system.
func cpuMount(line string) (at, root string, unified, ok bool) {
	before, after, found := strings.Cut(line, " - ")
	f, kind := strings.Fields(before), strings.Fields(after)
	if !found || len(f) < 5 || len(kind) < 3 {
		return "", "", false, false
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	unified = kind[0] == "cgroup2"
	return unescape.Replace(f[4]), unescape.Replace(f[3]), unified, unified || kind[0] == "cgroup" && hasWord(kind[2], "cpu")
}

// hasWord reports whether a word is in a list with commas.
func hasWord(list, word string) bool { return strings.Contains(","+list+",", ","+word+",") }

// quota reads the smallest quota of the groups, and the counters of its group. It returns nil if no
// group has a quota.
func quota(f *procFS, groups []cpuGroup) *Quota {
	var least *Quota
	var of cpuGroup
	for _, g := range groups {
		if cores := g.cores(f); cores > 0 && (least == nil || cores < least.Cores) {
			least, of = &Quota{Cores: cores, Group: g.name}, g
		}
	}
	if least == nil {
		return nil
	}
	stat, err := f.readOnce(path.Join(of.folder, "cpu.stat"))
	if err != nil {
		return least
	}
	for line := range bytes.SplitSeq(stat, []byte{'\n'}) {
		name, rest := cutField(line)
		n, _, _ := cutNumber(rest)
		switch string(name) {
		case "nr_periods":
			least.Periods = n
		case "nr_throttled":
			least.Throttled = n
		case "throttled_time": // version 1, in nanoseconds
			least.Lost = float64(n) / 1e9
		case "throttled_usec":
			least.Lost = float64(n) / 1e6
		}
	}
	return least
}

// cores returns the number of cores that the group's own quota allows, 0 if it has no quota.
func (g cpuGroup) cores(f *procFS) float64 {
	limit, period := "", ""
	if g.unified {
		limit, period, _ = strings.Cut(f.word(path.Join(g.folder, "cpu.max")), " ") // such as "max 100000"
	} else {
		limit, period = f.word(path.Join(g.folder, "cpu.cfs_quota_us")), f.word(path.Join(g.folder, "cpu.cfs_period_us"))
	}
	most, err := strconv.ParseInt(limit, 10, 64)
	each, bad := strconv.ParseInt(period, 10, 64)
	if err != nil || bad != nil || most <= 0 || each <= 0 {
		return 0
	}
	return float64(most) / float64(each)
}

// since adds to s the difference between q and before, if the two are of one group, and returns its
// counters' past.
func (q *Quota) since(before *Quota, was past, s *Sample) past {
	if q == nil || before == nil || q.Group != before.Group {
		return nil
	}
	r := was.rises(s.Seconds, false)
	now := &Quota{
		Cores: q.Cores, Group: q.Group,
		Periods:   rose(&r, q.Periods, before.Periods, mostEvents),
		Throttled: rose(&r, q.Throttled, before.Throttled, mostEvents),
		Lost:      rose(&r, q.Lost, before.Lost, mostCPU),
	}
	if !r.leftOut(s, LeftOutQuota) {
		s.Quota = now
	}
	return r.past()
}
