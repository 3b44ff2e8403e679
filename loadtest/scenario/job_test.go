package scenario

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/unit"
	"weir/loadtest/workload"
)

func TestDefaultsOfJobs(t *testing.T) {
	s := parse(t, "target: simulated://x\nworkload: {kind: job}\nfiles: {make: {count: 2}}\n")
	if j := s.Work.Job; j == nil || j.Page != 8<<10 || j.Event != 40<<10 || j.Skim != 1 || j.Events != 3000 || j.Access != workload.Direct {
		t.Errorf("a job without keys is %+v", s.Work.Job)
	}
	if size := s.Files.Make.Size.Fixed; size != 3000*40<<10 {
		t.Errorf("files of %v are made for it", size)
	}
	if l := s.Load; l.Ramp == 0 || l.Duration != seconds(10) || l.Cooldown != 0 {
		t.Errorf("without load.jobs the load is %+v", l)
	}
	s = parse(t, "target: simulated://x\nworkload: {kind: job, job: {event_size: 4KiB, access: staged}}\nload: {jobs: 2}\n")
	if l := s.Load; l.Ramp != 0 || l.Warmup != 0 || l.Duration != unit.Duration(time.Hour) || l.Cooldown != seconds(1) {
		t.Errorf("with load.jobs the load is %+v", l)
	}
	if j := s.Work.Job; j.Page != 4<<10 || j.Copy != unit.Duration(time.Hour) {
		t.Errorf("small events, staged: %+v", j)
	}
	s = parse(t, "target: simulated://x\nload: {jobs: 2, ramp: 2s, warmup: 3s, duration: 10s, cooldown: 5s}\n")
	if l := s.Load; l.Ramp != seconds(2) || l.Warmup != seconds(3) || l.Duration != seconds(10) || l.Cooldown != seconds(5) {
		t.Errorf("what is given is kept: %+v", l)
	}
}

func TestJobsInWords(t *testing.T) {
	for text, want := range map[string][]string{
		"kind: job": {"job, direct, 3000 events of 40KiB, pages of 8KiB, no computing", "reads 123 MB in 15000 requests; " +
			"each millisecond that an answer takes is 15s more"},
		"kind: job, job: {events: 100, skim: 10%, slim: 40%, vector: 8, compute: 2s}": {"10% of 100 events of 40KiB, 40% of each, " +
			"vectors of 8 pages of 8KiB, 2s of computing slept", "reads 164 kB in 3 requests, computes for 20s"},
		"kind: job, job: {read_ahead: 80KiB, compute: {exponential: 1ms}, burn: true}": {"requests of up to 80KiB, one request ahead, " +
			"exponential with mean 1ms of CPU time burned",
			"in 1500 requests, computes for 3s; each millisecond that an answer takes is 1.5s more, of which"},
		"kind: job, job: {access: staged}": {"job, staged, 3000 events", "copies a file, reads 123 MB of it in 15000 requests\n"},
	} {
		var b bytes.Buffer
		require.NoError(t, plan(t, "target: http://a/\nworkload: {"+text+"}\nload: {jobs: 3, clients: [2, 5]}\n").WriteText(&b))
		for _, w := range append(want, "each does 3 jobs and leaves", "at most 2h1s in 2 steps", "21 jobs, ") {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s: %q is missing in\n%s", text, w, &b)
			}
		}
	}
}

// The plan states the minimum duration of a job over a link, for any duration.
func TestJobsOverLinksInWords(t *testing.T) {
	for text, want := range map[string]string{
		"{rtt: 51ms}\nworkload: {kind: job}": "; over link it takes at least 12m45s\n",
		"{a: {rate: 1Mbit/s, rtt: 1s}, b: {rate: 2Mbit/s}}\nworkload: {kind: job, job: {compute: 10ms}}": "; over link a it takes at least " +
			"4h26m53.04s; over link b it takes at least 8m41.52s\n",
		"{rate: 1Mbit/s, rtt: 1s}\nworkload: {kind: job, job: {compute: 1s, read_ahead: 40KiB}}": "; over link it takes at least 1h6m23.04s\n",
		"{rate: 1Mbit/s, rtt: 1s}\nworkload: {kind: job, job: {access: staged, skim: 10%}}":      "; over link it takes at least 16m24.04s\n",
		"{rtt: 10s}\nworkload: {kind: job, job: {events: 1000000000, page: 1B, compute: 100d}}": "computes for a century or longer; " +
			"each millisecond that an answer takes is a century or longer more; over link it takes at least a century or longer\n",
	} {
		var b bytes.Buffer
		require.NoError(t, plan(t, "target: http://a/\nlink: "+text+"\n").WriteText(&b))
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: %q is missing in\n%s", text, want, &b)
		}
	}
}

func TestPlansOfJobsAreChecked(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, plan(t, "target: http://a/\nworkload: {kind: job}\nload: {jobs: 3, clients: 2}\n").WriteJSON(&b))
	good := b.String()
	for old, wrong := range map[string]string{`"jobs": 3`: `"jobs": -3`, `"events": 3000`: `"events": -1`,
		`"model": "closed"`: `"model": "open"`, `"page": "8KiB"`: `"page": "80KiB"`} {
		bad := strings.Replace(good, old, wrong, 1)
		if bad == good {
			t.Fatalf("%s is not in the plan", old)
		}
		if _, err := parsePlan([]byte(bad)); err == nil {
			t.Errorf("a plan with %s passes", wrong)
		}
	}
	if _, err := parsePlan([]byte(good)); err != nil {
		t.Error(err)
	}
}
