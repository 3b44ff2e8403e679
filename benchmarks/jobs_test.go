package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/wire"
	"weir/lab"
	"weir/transfer"
	"weir/transfer/client"
	"weir/transfer/trial"
)

// The metrics of jobs of the API of FTS3.
var (
	acceptRate  = metric{"files/s accepted", "accepted-files/s", 1, ""}
	dispatchCPU = metric{"CPU of the coordinator per file", "coordinator-cpu-us/file", 1e6, " us"}
	pollTime    = metric{"poll with files, p50", "poll-p50-ms", 1e3, " ms"}
	pollHigh    = metric{"poll with files, p99", "poll-p99-ms", 1e3, " ms"}
	pollCPU     = metric{"CPU of a poll with files", "poll-cpu-ms", 1e3, " ms"}
	statePoll   = metric{"poll without files, p99", "state-p99-ms", 1e3, " ms"}
)

// endpoints is the number of storage endpoints of the jobs.
const endpoints = 50

// jobsCase measures the dispatch of many open jobs.
func jobsCase(s scale) comparison {
	few, many := "SQLite, 50 jobs", fmt.Sprintf("SQLite, %d jobs", s.jobs)
	c := comparison{
		name:  "service-jobs",
		title: fmt.Sprintf("%d jobs of 5 files", s.jobs),
		about: fmt.Sprintf("Jobs of the API of FTS3 for %d endpoints, %d files in all. Copies wait until all jobs are submitted, and then end "+
			"at once: the endpoints are a stub in the process of the benchmark, which answers the seven or eight HTTP requests of a verified copy. "+
			"files/s counts from then to the end of the last job.", endpoints, 5*s.jobs),
		metrics: []metric{filesRate, acceptRate, dispatchCPU, memoryUsed},
		rounds:  3,
	}
	c.setup = func(r *rig) []side {
		run := func(jobs int) func(string) (figures, error) {
			return func(db string) (figures, error) { return r.dispatchJobs(db, jobs, 5*s.jobs/jobs) }
		}
		databases := r.onDatabases(run(s.jobs))
		databases[0].name = many
		databases[1].name = fmt.Sprintf("PostgreSQL, %d jobs", s.jobs)
		return append([]side{{few, func() (figures, error) { return run(endpoints)("") }}}, databases...)
	}
	const shared = "Coordinator, stub and database share the cores."
	for _, db := range []string{many, fmt.Sprintf("PostgreSQL, %d jobs", s.jobs)} {
		c.bars = append(c.bars, bar{metric: filesRate, a: db, least: true, limit: 1000, why: shared},
			bar{metric: memoryUsed, a: db, limit: 500e6})
	}
	c.bars = append(c.bars, bar{metric: filesRate, a: many, b: few, least: true, limit: .7})
	return c
}

// polling measures polls of all files of large jobs while the jobs are open.
func polling(s scale) comparison {
	const jobs = 10
	c := comparison{
		name:  "service-poll",
		title: fmt.Sprintf("Polling %d open files", s.polled),
		about: fmt.Sprintf("%d jobs of %d files each of the API of FTS3, whose copies do not end. Each job is polled 20 times for the "+
			"fields that Rucio asks for, with the metadata that Rucio adds, one poll after the other.", jobs, s.polled/jobs),
		metrics: []metric{pollTime, pollHigh, pollCPU, statePoll, acceptRate, memoryUsed},
		rounds:  3,
	}
	c.setup = func(r *rig) []side {
		return r.onDatabases(func(db string) (figures, error) { return r.pollJobs(db, jobs, s.polled/jobs) })
	}
	const shared = "The client that reads the answer shares the cores."
	for _, db := range []string{"SQLite", "PostgreSQL"} {
		c.bars = append(c.bars, bar{metric: pollHigh, a: db, limit: .2, why: shared}, bar{metric: statePoll, a: db, limit: .2, why: shared},
			bar{metric: acceptRate, a: db, least: true, limit: 5000, why: shared}, bar{metric: memoryUsed, a: db, limit: 500e6})
	}
	return c
}

// A jobsRig is a coordinator with a user of the API of FTS3 and a stub for endpoints.
type jobsRig struct {
	*stub
	trial *trial.Trial
	url   string
	token string
	http  *http.Client
}

func (r *rig) startJobs(ctx context.Context, db string) (_ *jobsRig, err error) {
	j := &jobsRig{}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.close())
		}
	}()
	if j.stub, err = newStub(); err != nil {
		return nil, err
	}
	if j.trial, err = r.coordinator(ctx, db, "--approve-up-to", "all", "--fts-endpoints", "local"); err != nil {
		return nil, err
	}
	c, err := j.trial.Client()
	if err != nil {
		return nil, err
	}
	if j.token, err = c.Token(ctx, transfer.NewToken{Subject: "rucio", Roles: []string{"weir.submit"}, Life: time.Hour}); err != nil {
		return nil, err
	}
	conf, err := client.Read(j.trial.ConfigFile())
	if err != nil {
		return nil, err
	}
	j.url = conf.URLs[0] + "/fts"
	j.http = &http.Client{Transport: &http.Transport{TLSClientConfig: wire.Pinned(conf.Pin), MaxIdleConnsPerHost: 8}}
	return j, nil
}

func (j *jobsRig) close() (err error) {
	if j.http != nil {
		j.http.CloseIdleConnections()
	}
	if j.trial != nil {
		err = j.trial.Close()
	}
	if j.stub != nil {
		j.release()
		err = errors.Join(err, j.server.Close())
	}
	return err
}

// ask sends a request and returns the body of the response.
func (j *jobsRig) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, j.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+j.token)
	res, err := j.http.Do(req)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %.500s", method, path, res.Status, text)
	}
	return text, err
}

// submit submits a job of files for one endpoint and returns its id.
func (j *jobsRig) submit(ctx context.Context, job, files int) (string, error) {
	text, err := j.ask(ctx, http.MethodPost, "/jobs", j.body(job, files))
	var out struct {
		ID string `json:"job_id"`
	}
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	return out.ID, err
}

// body returns a submission as Rucio sends it.
func (j *jobsRig) body(job, files int) []byte {
	to := job % endpoints
	from := (to + 1 + job/endpoints%(endpoints-1)) % endpoints
	var b bytes.Buffer
	b.WriteString(`{"files":[`)
	for i := range files {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"sources":["%s/src/test/%d/f%d"],"destinations":["%s/dst/test/%d/f%d"],
			"metadata":{"request_id":"d6b6c0c4e5a94d6ca2c8b7d1a3f0%08d","scope":"test","name":"f%d","activity":"User Subscriptions",
			"request_type":"TRANSFER","src_type":"DISK","dst_type":"DISK","src_rse":"A","dst_rse":"B","filesize":%d,"adler32":"%s"},
			"filesize":%d,"checksum":"ADLER32:%s","selection_strategy":"orderly","activity":"User Subscriptions"}`,
			j.base(from), job, i, j.base(to), job, i, i, i, stubSize, stubAdler, stubSize, stubAdler)
	}
	b.WriteString(`],"params":{"verify_checksum":"both","overwrite":true,"priority":3,"job_metadata":{"issuer":"rucio"}}}`)
	return b.Bytes()
}

// submitJobs submits jobs, eight at a time, and returns their ids and the duration.
func (j *jobsRig) submitJobs(ctx context.Context, jobs, files int) (ids []string, took time.Duration, err error) {
	ids, errs := make([]string, jobs), make([]error, 8)
	var next atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	for w := range errs {
		all.Go(func() {
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= jobs {
					return
				}
				ids[i], errs[w] = j.submit(ctx, i, files)
			}
		})
	}
	all.Wait()
	return ids, time.Since(begin), errors.Join(errs...)
}

// dispatchJobs measures the rate at which jobs are dispatched that are all open at once.
func (r *rig) dispatchJobs(db string, jobs, files int) (f figures, err error) {
	ctx := r.Context()
	j, err := r.startJobs(ctx, db)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	_, took, err := j.submitJobs(ctx, jobs, files)
	if err != nil {
		return nil, err
	}
	pid := j.trial.Coordinator().Pid()
	before, err := groupCPU(pid)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	j.release()
	total := int64(jobs * files)
	late := time.After(10 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-late:
			return nil, fmt.Errorf("%d of %d files were copied", j.moved.Load(), total)
		}
		if j.moved.Load() >= total {
			text, err := j.ask(ctx, http.MethodGet, "/jobs?limit=1", nil)
			if err != nil {
				return nil, err
			}
			ended = strings.TrimSpace(string(text)) == "[]"
		}
	}
	wall := time.Since(begin)
	after, err := groupCPU(pid)
	if err != nil {
		return nil, err
	}
	if n := j.moved.Load(); n != total {
		return nil, fmt.Errorf("%d files were renamed, not %d", n, total)
	}
	peak, err := lab.StatusBytes(pid, "VmHWM:")
	return figures{filesRate: float64(total) / wall.Seconds(), acceptRate: float64(total) / took.Seconds(),
		dispatchCPU: (after - before).Seconds() / float64(total), memoryUsed: float64(peak)}, err
}

// pollJobs measures polls of open jobs.
func (r *rig) pollJobs(db string, jobs, files int) (f figures, err error) {
	ctx := r.Context()
	j, err := r.startJobs(ctx, db)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	ids, took, err := j.submitJobs(ctx, jobs, files)
	if err != nil {
		return nil, err
	}
	pid := j.trial.Coordinator().Pid()
	poll := func(query string) (times []time.Duration, cpu float64, err error) {
		before, err := groupCPU(pid)
		for range 20 {
			for _, id := range ids {
				begin := time.Now()
				var text []byte
				if err == nil {
					text, err = j.ask(ctx, http.MethodGet, "/jobs/"+id+query, nil)
				}
				times = append(times, time.Since(begin))
				if n := bytes.Count(text, []byte(`"file_state"`)); err == nil && query != "" && n != files {
					err = fmt.Errorf("a poll has %d files", n)
				}
			}
		}
		slices.SortFunc(times, func(a, b time.Duration) int { return cmp.Compare(a, b) })
		after, cpuErr := groupCPU(pid)
		return times, (after - before).Seconds() / float64(len(times)), errors.Join(err, cpuErr)
	}
	whole, cpu, err := poll("?files=file_state,dest_surl,finish_time,start_time,staging_start,staging_finished,reason,source_surl,file_metadata")
	if err != nil {
		return nil, err
	}
	states, _, err := poll("")
	if err != nil {
		return nil, err
	}
	peak, err := lab.StatusBytes(pid, "VmHWM:")
	at := func(all []time.Duration, p int) float64 { return all[len(all)*p/100].Seconds() }
	return figures{pollTime: at(whole, 50), pollHigh: at(whole, 99), pollCPU: cpu, statePoll: at(states, 99),
		acceptRate: float64(jobs*files) / took.Seconds(), memoryUsed: float64(peak)}, err
}

// A stub responds like storage endpoints that make third-party copies, but transfers no data. A
// source has every file below /src, a destination has the files that were renamed there.
type stub struct {
	server *http.Server
	port   string
	held   chan struct{} // copies wait until it is closed
	once   sync.Once
	moved  atomic.Int64
	files  sync.Map // host and path
}

// Every file of a stub has this size and checksum.
const (
	stubSize  = 1 << 20
	stubAdler = "04000401"
)

func newStub() (*stub, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", "0.0.0.0:0")
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	s := &stub{port: port, held: make(chan struct{})}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.server.Serve(l) }() // until it is closed
	return s, err
}

// base returns the URL of an endpoint.
func (s *stub) base(i int) string { return fmt.Sprintf("http://127.0.1.%d:%s", i+1, s.port) }

// release ends the wait of the copies.
func (s *stub) release() { s.once.Do(func() { close(s.held) }) }

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.Host + r.URL.Path
	switch r.Method {
	case http.MethodOptions:
		w.Header().Set("Allow", "OPTIONS, HEAD, COPY, MOVE, DELETE, MKCOL")
	case http.MethodHead:
		if _, there := s.files.Load(name); !there && !strings.HasPrefix(r.URL.Path, "/src/") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(stubSize))
		w.Header().Set("Digest", "adler32="+stubAdler)
	case "MKCOL":
		w.WriteHeader(http.StatusMethodNotAllowed) // it is there
	case "COPY":
		select {
		case <-s.held:
		case <-r.Context().Done():
			return
		}
		s.files.Store(name, true)
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "success: Created\n")
	case "MOVE":
		to, err := url.Parse(r.Header.Get("Destination"))
		_, there := s.files.LoadAndDelete(name)
		if err != nil || !there {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if _, twice := s.files.Swap(to.Host+to.Path, true); !twice {
			s.moved.Add(1)
		}
		w.WriteHeader(http.StatusCreated)
	case http.MethodDelete:
		s.files.Delete(name)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}
