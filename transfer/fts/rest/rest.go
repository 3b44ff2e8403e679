package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"mime"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/tpc"
	"weir/internal/unit"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/api"
	"weir/transfer/dispatch"
	"weir/transfer/fts"
	"weir/transfer/queue"
	"weir/transfer/sites"
)

// Path is the path of FTS3's API: clients use the coordinator's URL and this path as their endpoint.
const Path = "/fts"

const (
	mostJobs = 1000 // in one request
	listJobs = 500  // as FTS
	bodyTime = time.Minute
)

// A route is a route below Path.
type route struct {
	api.Operation
	f func(*api.Call) (int, any, error)
}

// table returns the routes below Path. Handlers check roles themselves.
func (c *API) table() []route {
	one := func(pattern, role string, text api.Doc, in, out reflect.Type, f func(*api.Call) (int, any, error)) route {
		return route{api.Operation{Pattern: pattern, Role: role, About: text, In: in, Out: out}, f}
	}
	job, names := api.TypeOf[fts.JobAnswer](), api.TypeOf[[]string]()
	many := func(r route) route {
		r.Many = true
		return r
	}
	media := func(media string, r route) route {
		r.Media = media
		return r
	}
	submit, delegate := api.About("Submit a job"), api.About("Delegate a proxy: PEM, signed for the key of the request, with its chain")
	return slices.Concat(c.config.table(), c.optimizerTable(), []route{
		one("GET /{$}", "", api.About("Version"), nil, api.TypeOf[fts.ServiceVersion](), c.serviceVersion),
		one("GET /whoami", "", api.About("Who asks"), nil, api.TypeOf[fts.User](), c.whoami),
		one("GET /jobs", access.MayRead, api.About("List jobs: those that have not ended, or by state_in", jobFilters()...), nil,
			api.TypeOf[[]fts.JobAnswer](), c.list),
		one("POST /jobs", access.MaySubmit, submit, api.TypeOf[fts.NewJob](), api.TypeOf[fts.SubmittedJob](), c.submit),
		one("PUT /jobs", access.MaySubmit, submit, api.TypeOf[fts.NewJob](), api.TypeOf[fts.SubmittedJob](), c.submit),
		many(one("GET /jobs/{ids}", access.MayRead, api.About("Show jobs; ids are separated by commas", "files"), nil, job, c.show)),
		many(one("POST /jobs/{ids}", access.MaySubmit, api.About("Change the priority of jobs"), api.TypeOf[fts.JobChange](), job, c.modify)),
		many(one("DELETE /jobs/{ids}", access.MaySubmit, api.About("Cancel jobs"), nil, job, c.cancel)),
		one("DELETE /jobs/vo/{vo}", access.MayAdmin, api.About("Cancel the jobs of a virtual organization"), nil,
			api.TypeOf[fts.CancelledAnswer](),
			c.cancelVO),
		many(one("DELETE /jobs/{ids}/files/{files}", access.MaySubmit, api.About("Cancel files of a job; ids are separated by commas"), nil,
			api.TypeOf[string](), c.cancelFiles)),
		one("GET /jobs/{ids}/files", access.MayRead, api.About("List files of a job"), nil, api.TypeOf[[]fts.FileAnswer](), c.files),
		one("GET /jobs/{ids}/dm", access.MayRead, api.About("List files of a deletion job"), nil, api.TypeOf[[]fts.DeletionAnswer](),
			c.deletions),
		one("GET /jobs/{ids}/files/{file}/retries", access.MayRead, api.About("List failed attempts at a file"), nil,
			api.TypeOf[[]fts.RetryAnswer](),
			c.retries),
		one("GET /ban/se", access.MayAdmin, api.About("List banned storage elements"), nil, api.TypeOf[[]fts.BanAnswer](),
			c.config.listBans(dispatch.BanSE)),
		one("POST /ban/se", access.MayAdmin, api.About("Ban a storage element; the answer is the affected jobs"),
			api.TypeOf[fts.NewBan](), names, c.config.banSE),
		one("DELETE /ban/se", access.MayAdmin, api.About("Lift the ban of a storage element", "storage"), nil, nil, c.config.unbanSE),
		one("GET /ban/dn", access.MayAdmin, api.About("List banned users"), nil, api.TypeOf[[]fts.BanAnswer](),
			c.config.listBans(dispatch.BanDN)),
		one("POST /ban/dn", access.MayAdmin, api.About("Ban a user and cancel the jobs of this user"), api.TypeOf[fts.NewUserBan](),
			names, c.config.banDN),
		one("DELETE /ban/dn", access.MayAdmin, api.About("Lift the ban of a user", "user_dn"), nil, nil, c.config.unbanDN),
		one("GET /status/hosts", access.MayRead, api.About("Number of running transfers"), nil, api.TypeOf[map[string]fts.HostAnswer](), c.hosts),
		media("application/x-pem-file", one("GET /whoami/certificate", "", api.About("Certificate of who asks"), nil, api.TypeOf[string](),
			c.certificate)),
		one("GET /delegation/{id}", "", api.About("Until when the delegated proxy is valid"), nil, api.TypeOf[fts.DelegationAnswer](),
			c.delegation),
		one("DELETE /delegation/{id}", access.MaySubmit, api.About("Remove the delegated proxy"), nil, nil, c.undelegate),
		media("text/plain", one("GET /delegation/{id}/request", access.MaySubmit, api.About("Certificate request for a proxy"), nil,
			api.TypeOf[string](),
			c.delegationRequest)),
		one("PUT /delegation/{id}/credential", access.MaySubmit, delegate, nil, nil, c.delegate),
		one("POST /delegation/{id}/credential", access.MaySubmit, delegate, nil, nil, c.delegate),
	})
}

// Handler returns the handler of the routes below Path, and their descriptions.
func (c *API) Handler() (h http.Handler, described []api.Operation) {
	mux := http.NewServeMux()
	for _, route := range c.table() {
		one := route.Operation
		method, path, _ := strings.Cut(route.Pattern, " ")
		one.Pattern = method + " " + Path + strings.TrimSuffix(path, "{$}")
		described = append(described, one)
		mux.HandleFunc(route.Pattern, func(w http.ResponseWriter, r *http.Request) {
			q := &api.Call{Request: r, Caller: access.CallerOf(r.Context()), Params: route.About.Params}
			sent := r.Body
			r.Body = http.MaxBytesReader(w, sent, fts.MaxBody)
			to := http.NewResponseController(w)
			_ = to.SetReadDeadline(time.Now().Add(bodyTime)) // always supported here
			status, out, err := 0, any(nil), c.requests.RefuseBanned(q.Caller)
			if err == nil && r.ContentLength > fts.MaxBody { // the server does not wait for the body
				w.Header().Set("Connection", "close")
				err = fts.Refuse(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", fts.MaxBody)
			}
			if err == nil {
				status, out, err = route.f(q)
			}
			if refused := wire.BodyRefused(sent); refused != nil {
				w.Header().Set("Connection", "close") // the rest is not read
				err = refused
			}
			if err == nil {
				_ = to.SetReadDeadline(time.Time{}) // otherwise the rest of the body may come slowly, or not at all
			} else {
				status, out = c.refuse(r.Context(), w, err)
			}
			answer(w, status, out)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		status, out := c.refuse(r.Context(), w, fts.Refuse(http.StatusNotFound, "weir has no %s %.200s of FTS", r.Method, r.URL.Path))
		answer(w, status, out)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := *r.URL
		at.Path, at.RawPath = path.Clean("/"+strings.TrimPrefix(r.URL.Path, Path)), "" // FTS's client writes https://HOST/fts//jobs
		inner := r.WithContext(r.Context())
		inner.URL = &at
		mux.ServeHTTP(w, inner)
	}), described
}

// Fail sends an error.
func Fail(w http.ResponseWriter, status int, err error) {
	answer(w, status, refusal(status, err.Error()))
}

// A plainAnswer is a response that is not JSON.
type plainAnswer struct {
	media  string // "": there is no body
	header http.Header
	body   []byte
}

func answer(w http.ResponseWriter, status int, out any) {
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	if plain, ok := out.(plainAnswer); ok {
		maps.Copy(w.Header(), plain.header)
		if plain.media != "" {
			w.Header().Set("Content-Type", plain.media)
		}
		w.WriteHeader(status)
		_, _ = w.Write(plain.body) // as below
		return
	}
	text, err := json.Marshal(out)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"status":"500 Internal Server Error","message":"the answer cannot be encoded"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that has disconnected repeats the request
}

// refuse returns an error in FTS's form, and sets the headers of w.
func (c *API) refuse(ctx context.Context, w http.ResponseWriter, err error) (int, any) {
	var e *fts.Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, queue.ErrDuplicate):
		e = fts.Refuse(http.StatusConflict, "The submission is duplicated: %s", err)
	default:
		err = c.refuser.Refusal(ctx, err)
		wire.SetRetryAfter(w, err)
		status := wire.Status(err)
		if status == 0 {
			status = http.StatusInternalServerError
		}
		e = fts.Refuse(status, "%s", err)
	}
	return e.Status, refusal(e.Status, e.Message)
}

// input decodes a body as FTS does: a JSON object, or a form.
func input(q *api.Call) (map[string]any, error) {
	in := map[string]any{}
	if media, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type")); media == "application/x-www-form-urlencoded" {
		if err := q.ParseForm(); err != nil {
			return nil, fts.Refuse(http.StatusBadRequest, "Malformed input")
		}
		for name, values := range q.PostForm {
			in[name] = values[0]
		}
		return in, nil
	}
	if err := json.NewDecoder(q.Body).Decode(&in); err != nil || in == nil { // null
		return nil, fts.Refuse(http.StatusBadRequest, "Malformed input")
	}
	return in, nil
}

func refusal(status int, message string) fts.Refusal {
	return fts.Refusal{Status: fts.StatusText(status), Message: message}
}

func (c *API) serviceVersion(*api.Call) (int, any, error) {
	version := func(major, minor, patch int) map[string]int {
		return map[string]int{"major": major, "minor": minor, "patch": patch}
	}
	return http.StatusOK, map[string]any{"api": version(3, 14, 2), "core": version(3, 14, 2), "schema": version(10, 0, 1),
		"delegation": version(1, 0, 0), "weir": c.version}, nil
}

func (c *API) whoami(q *api.Call) (int, any, error) {
	method := "oauth2"
	if q.Token == "" && !q.External {
		method = "certificate"
	}
	level := map[string]string{}
	switch {
	case q.Has(access.MayAdmin):
		level = map[string]string{"transfer": "all", "config": "all"}
	case q.Has(access.MaySubmit):
		level["transfer"] = "vo"
	}
	vos := c.access.VOsOf(q.Caller)
	ids := []string{}
	for _, vo := range vos {
		ids = append(ids, fts.VOID(vo))
	}
	return http.StatusOK, map[string]any{"dn": []string{q.User()}, "user_dn": q.User(), "vos": vos, "vos_id": ids,
		"voms_cred": api.OrEmpty(q.Scopes), "roles": api.OrEmpty(q.Roles), "is_root": q.Has(access.MayAdmin), "method": method, "level": level,
		"base_id": fts.BaseID, "delegation_id": q.DelegationID()}, nil
}

// hosts returns the number of active files, for fts-rest-server-status.
func (c *API) hosts(q *api.Call) (int, any, error) {
	return http.StatusOK, map[string]any{"weir": map[string]int{"active": c.leases.OfJobs(), "staging": 0}}, q.Need(access.MayRead)
}

// submit adds a job.
func (c *API) submit(q *api.Call) (int, any, error) {
	if err := q.Need(access.MaySubmit); err != nil {
		return 0, nil, err
	}
	s, err := fts.Read(q.Body)
	if err != nil {
		return 0, nil, err
	}
	c.config.setDefaults(s)
	if err := c.needsApproval(q, s); err != nil {
		return 0, nil, err
	}
	done, err := c.requests.Admit(q.Context(), q.Caller, len(s.Files)+len(s.Deletes))
	if err != nil {
		return 0, nil, err
	}
	defer done()
	id, vo := fts.NewID(), c.access.VOsOf(q.Caller)[0]
	if s.SID != "" {
		id = fts.DeterministicID(vo, s.SID)
	}
	tokens := c.access.NewTokenReader(s.Unmanaged)
	if tokens.Proxy, err = c.proxyForJob(q); err != nil {
		return 0, nil, err
	}
	parts, err := c.jobParts(q.Context(), id, s, tokens)
	if err != nil {
		return 0, nil, err
	}
	about := s.Keep(vo)
	about.User, about.Credential = q.DN, q.Credential
	kept, err := json.Marshal(about)
	if err != nil {
		return 0, nil, err
	}
	if err := tokens.Keep(q.Context(), id); err != nil {
		return 0, nil, err
	}
	if err := c.queue.SubmitJob(q.Context(), queue.Job{ID: id, By: q.Name, VO: vo, Params: string(kept)}, parts); err != nil {
		return 0, nil, err
	}
	c.log.Info("job submitted", "job", id, "by", q.Name, "files", len(s.Files), "deletes", len(s.Deletes))
	c.wakeAll()
	return http.StatusOK, map[string]string{"job_id": id}, nil
}

// needsApproval returns an error for jobs that would require an approval, for which FTS's clients
// cannot wait.
func (c *API) needsApproval(q *api.Call, s *fts.Submission) error {
	if c.approve < 0 || q.Has(access.MayApprove) {
		return nil
	}
	bytes := 0.0 // may exceed the range of integers
	for i := range s.Files {
		if s.Files[i].Size < 0 {
			return fts.Refuse(http.StatusForbidden, "file %d has no filesize, and this service transfers files of an unknown size only for users "+
				"with the role %s", i, transfer.RoleNames(access.MayApprove))
		}
		bytes += float64(s.Files[i].Size)
	}
	if bytes > float64(c.approve) {
		return fts.Refuse(http.StatusForbidden, "the job has %s; without the role %s at most %s are possible", unit.Bytes(bytes),
			transfer.RoleNames(access.MayApprove), unit.Bytes(float64(max(c.approve, 0))))
	}
	return nil
}

// jobParts sorts the files of a submission by destination, activity and strategy.
func (c *API) jobParts(ctx context.Context, id string, s *fts.Submission, tokens *access.TokenReader) (parts []queue.JobPart,
	err error) {
	type key struct {
		to, share string
		orderly   bool
		hop       int
	}
	at := map[key]int{}
	sites := &jobSites{c.registry.URLs(), c}
	for i := range s.Files {
		f := &s.Files[i]
		p, to, err := sites.pair(ctx, id, i, f, tokens)
		if err != nil {
			return nil, err
		}
		k := key{to, f.Activity, f.Strategy == "orderly" && len(f.Sources) > 1, 0}
		if s.Hops {
			k.hop, p.After = i, i
		}
		n, known := at[k]
		if !known {
			n = len(parts)
			at[k] = n
			parts = append(parts, c.jobPart(s, to, f.Activity, k.orderly))
			if s.Hops {
				asHop(&parts[n], s, i)
			}
		}
		parts[n].Pairs = append(parts[n].Pairs, p)
	}
	deletes := s.Deletes
	if s.Hops && !s.Keeps() {
		deletes = copiesOnTheWay(s)
	}
	for i := range deletes {
		p, to, err := sites.deletion(ctx, id, len(s.Files)+i, &deletes[i], tokens)
		if err != nil {
			return nil, err
		}
		if s.Hops {
			p.After, p.Made = len(s.Files), i+1
		}
		k := key{to: to, hop: -1}
		n, known := at[k]
		if !known {
			n = len(parts)
			at[k] = n
			parts = append(parts, c.jobPart(s, to, "default", false))
			parts[n].Terms, parts[n].Expires = queue.JobTerms{RetryDelay: s.Delay, Delete: true}, time.Time{}
		}
		parts[n].Pairs = append(parts[n].Pairs, p)
	}
	return parts, nil
}

// asHop changes a part to the terms of a hop of a multihop job: only the first file is brought
// online, and only the last file is archived.
func asHop(p *queue.JobPart, s *fts.Submission, i int) {
	if i > 0 {
		p.Terms.Stage, p.Terms.Pin = 0, 0
	}
	if i < len(s.Files)-1 {
		p.Terms.Archive = 0
		p.Replace = p.Replace || s.OnHop
	}
}

// copiesOnTheWay returns the copies that a multihop job makes before the copy at its destination.
func copiesOnTheWay(s *fts.Submission) (all []fts.Delete) {
	for i := range s.Files[:len(s.Files)-1] {
		f := &s.Files[i]
		all = append(all, fts.Delete{URL: f.Dest, Text: f.DestText, Token: f.DestToken})
	}
	return all
}

// jobSites are the sites of the URLs of a job.
type jobSites struct {
	*sites.URLs
	c *API
}

// deletion returns a file of a deletion job, and its site. Its size is 0, because no bytes arrive.
func (s *jobSites) deletion(ctx context.Context, id string, i int, d *fts.Delete, read *access.TokenReader) (p queue.Pair, to string,
	err error) {
	kept, err := json.Marshal(d.Keep())
	if err != nil {
		return p, "", err
	}
	p = queue.Pair{Number: i, Dest: d.URL.String(), Params: string(kept)}
	if to, p.Path, err = s.Of(ctx, d.URL); err != nil {
		return p, "", refusedFile(i, err)
	}
	if err := s.banned(to); err != nil {
		return p, "", err
	}
	p.Sources = []queue.PairSource{{Site: to, Path: p.Path, URL: p.Dest}}
	var tokens access.JobTokens
	if tokens.Dest, err = read.Read(ctx, d.Token); err != nil {
		return p, "", err
	}
	if d.Token == "" {
		tokens.Proxy = read.Proxy
	}
	p.Secret, err = s.c.access.SealTokens(tokens, id, i)
	return p, to, err
}

// pair returns a file of a job, and its destination site.
func (s *jobSites) pair(ctx context.Context, id string, i int, f *fts.File, read *access.TokenReader) (p queue.Pair, to string, err error) {
	kept, err := json.Marshal(f.Keep())
	if err != nil {
		return p, "", err
	}
	p = queue.Pair{Number: i, Dest: f.Dest.String(), Size: f.Size, Adler: f.Adler, Params: string(kept), Tape: string(f.Staging)}
	if to, p.Path, err = s.Of(ctx, f.Dest); err != nil {
		return p, "", refusedFile(i, err)
	}
	var tokens access.JobTokens
	if tokens.Dest, err = read.Read(ctx, f.DestToken); err != nil {
		return p, "", err
	}
	if err := s.banned(to); err != nil {
		return p, "", err
	}
	for k, u := range f.Sources {
		site, path, err := s.Of(ctx, u)
		if err == nil {
			err = s.banned(site)
		}
		switch {
		case err != nil:
			return p, "", refusedFile(i, err)
		case slices.ContainsFunc(p.Sources, func(other queue.PairSource) bool { return other.Site == site }):
			return p, "", fts.Refuse(http.StatusBadRequest, "file %d has two sources at %s", i, fts.SE(u))
		case site == to && path == p.Path:
			return p, "", fts.Refuse(http.StatusBadRequest, "file %d has the same source and destination", i)
		}
		p.Sources = append(p.Sources, queue.PairSource{Site: site, Path: path, URL: u.String()})
		if f.SourceTokens != nil {
			one, err := read.Read(ctx, f.SourceTokens[k])
			if err != nil {
				return p, "", err
			}
			tokens.Add(site, one)
		}
	}
	if f.SourceTokens == nil && f.DestToken == "" {
		tokens.Proxy = read.Proxy
	}
	p.Secret, err = s.c.access.SealTokens(tokens, id, i)
	return p, to, err
}

// banned returns an error for files of a banned storage element, as FTS does.
func (s *jobSites) banned(site string) error {
	if b, is := s.c.sites.Ban(site); is && b.Status != dispatch.BanAccepts {
		return fts.Refuse(http.StatusForbidden, "%s", b.Why())
	}
	return nil
}

// refusedFile returns the response to a URL that the guard of jobs refuses. Other errors are not
// the client's fault.
func refusedFile(i int, err error) error {
	if errors.Is(err, tpc.ErrRefused) {
		return fts.Refuse(http.StatusBadRequest, "file %d: %s", i, err)
	}
	return err
}

// jobPart returns a part without files.
func (c *API) jobPart(s *fts.Submission, to, activity string, orderly bool) queue.JobPart {
	p := queue.JobPart{To: to, Share: activity, Priority: s.Priority - 3, Unchecked: s.Verify == "none" || s.Verify == "source",
		Replace: s.Replace, Orderly: orderly, Timeout: s.Timeout, Streams: s.Streams,
		Terms: queue.JobTerms{RetryDelay: s.Delay, Strict: s.Strict, Stage: s.Stage, Pin: s.Pin, Archive: s.Archive}}
	if s.Retry != 0 {
		p.Tries = max(s.Retry, 0) + 1
	}
	if s.InQueue > 0 {
		p.Expires = c.now().Add(s.InQueue)
	}
	return p
}

// jobs returns the jobs of a list of ids that the caller may see. refused has the reasons for the
// other ids.
func (c *API) jobs(q *api.Call) (ids []string, jobs map[string]*queue.JobState, refused map[string]*fts.Error, err error) {
	if err := q.Need(access.MayRead); err != nil {
		return nil, nil, nil, err
	}
	for id := range strings.SplitSeq(q.PathValue("ids"), ",") {
		if id = strings.ToLower(id); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 || len(ids) > mostJobs {
		return nil, nil, nil, fts.Refuse(http.StatusBadRequest, "%d jobs: ask for 1 to %d", len(ids), mostJobs)
	}
	all, err := c.queue.Read.Jobs(q.Context(), ids)
	if err != nil {
		return nil, nil, nil, err
	}
	jobs, refused = map[string]*queue.JobState{}, map[string]*fts.Error{}
	for _, j := range all {
		jobs[j.ID] = j
	}
	for _, id := range ids {
		if jobs[id] == nil {
			refused[id] = fts.Refuse(http.StatusNotFound, "No job with the id %q has been found", text100(id))
		}
	}
	return ids, jobs, refused, nil
}

func text100(s string) string { return s[:min(len(s), 100)] }

// multi returns the response for some jobs: the job itself if one job was requested, else a list,
// with status 207 if a job was refused.
func multi(ids []string, one func(id string) map[string]any, refused map[string]*fts.Error) (int, any, error) {
	var all []map[string]any
	for _, id := range ids {
		if e := refused[id]; e != nil {
			all = append(all, map[string]any{"job_id": id, "http_status": fts.StatusText(e.Status), "http_message": e.Message})
			continue
		}
		m := one(id)
		if m["http_status"] == nil {
			m["http_status"] = fts.StatusText(http.StatusOK)
		}
		all = append(all, m)
	}
	switch {
	case len(ids) == 1 && len(refused) == 1:
		return refused[ids[0]].Status, all[0], nil
	case len(ids) == 1:
		return http.StatusOK, all[0], nil
	case len(refused) > 0:
		return http.StatusMultiStatus, all, nil
	}
	return http.StatusOK, all, nil
}

// show returns jobs, and the fields of their files that are listed in files=.
func (c *API) show(q *api.Call) (int, any, error) {
	ids, jobs, refused, err := c.jobs(q)
	if err != nil {
		return 0, nil, err
	}
	rows := map[string]map[string]any{}
	fields := slices.DeleteFunc(strings.Split(q.Param("files"), ","), func(s string) bool { return s == "" })
	for id, j := range jobs {
		rows[id] = fts.Job(j)
		if len(fields) == 0 {
			continue
		}
		files, err := c.queue.Read.JobFiles(q.Context(), j)
		if err != nil {
			return 0, nil, err
		}
		list, err := fts.AppendFiles(nil, j, slices.DeleteFunc(files, (*queue.JobFile).Removed), fields)
		if err != nil {
			return 0, nil, err
		}
		rows[id]["files"] = json.RawMessage(list)
	}
	return multi(ids, func(id string) map[string]any { return rows[id] }, refused)
}

// job returns the one job of a path.
func (c *API) job(q *api.Call) (*queue.JobState, error) {
	ids, jobs, refused, err := c.jobs(q)
	switch {
	case err != nil:
		return nil, err
	case len(ids) > 1:
		return nil, fts.Refuse(http.StatusBadRequest, "%d jobs: ask for one", len(ids))
	case refused[ids[0]] != nil:
		return nil, refused[ids[0]]
	}
	return jobs[ids[0]], nil
}

// jobFiles returns the job of a request that concerns one job, and its files.
func (c *API) jobFiles(q *api.Call) (*queue.JobState, []*queue.JobFile, error) {
	j, err := c.job(q)
	if err != nil {
		return nil, nil, err
	}
	files, err := c.queue.Read.JobFiles(q.Context(), j)
	return j, files, err
}

func (c *API) files(q *api.Call) (int, any, error) {
	j, files, err := c.jobFiles(q)
	return http.StatusOK, rows(j, files), err
}

// rows returns the files of a job that are copied.
func rows(j *queue.JobState, files []*queue.JobFile) []map[string]any {
	rows := []map[string]any{}
	for _, f := range files {
		if !f.Removed() {
			rows = append(rows, fts.Files(j, f)...)
		}
	}
	return rows
}

func (c *API) deletions(q *api.Call) (int, any, error) {
	j, files, err := c.jobFiles(q)
	rows := []map[string]any{}
	for _, f := range files {
		if f.Removed() {
			rows = append(rows, fts.Deletion(j, f))
		}
	}
	return http.StatusOK, rows, err
}

func (c *API) retries(q *api.Call) (int, any, error) {
	j, err := c.job(q)
	if err != nil {
		return 0, nil, err
	}
	item, err := strconv.ParseInt(q.PathValue("file"), 10, 64)
	if err != nil {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "file_id is not a number")
	}
	_, request, err := c.queue.Read.Item(q.Context(), item)
	if err != nil {
		return 0, nil, err
	}
	if !slices.ContainsFunc(j.Parts, func(p queue.JobRequest) bool { return p.ID == request }) {
		return 0, nil, fts.Refuse(http.StatusNotFound, "No file with the id %q has been found", q.PathValue("file"))
	}
	all, err := c.queue.Read.Attempts(q.Context(), item)
	return http.StatusOK, fts.Retry(all), err
}

// jobFilters returns the parameters by which jobs can be selected.
func jobFilters() []string {
	return []string{"user_dn", "vo_name", "dlg_id", "state_in", "source_se", "dest_se", "time_window", "limit"}
}

// list returns the caller's jobs or, for an administrator, the jobs of all users. By default it
// returns jobs that have not ended. As in FTS, state_in with limit also selects jobs that have
// ended, and state_in with time_window only jobs that have ended in these hours.
func (c *API) list(q *api.Call) (int, any, error) {
	if err := q.Need(access.MayRead); err != nil {
		return 0, nil, err
	}
	for name := range q.URL.Query() {
		if !slices.Contains(jobFilters(), name) {
			return 0, nil, fts.Refuse(http.StatusBadRequest, "%.50s: jobs cannot be selected by it", name)
		}
	}
	f := queue.JobFilter{Open: true, VO: q.Param("vo_name"), Credential: q.Param("dlg_id"), Source: element(q.Param("source_se")),
		Dest: element(q.Param("dest_se")), Limit: cmp.Or(int(q.Integer("limit", 0, 0, listJobs)), listJobs)}
	window, err := timeWindow(q.Param("time_window"))
	if err = cmp.Or(q.Invalid, err); err != nil {
		return 0, nil, err
	}
	if f.User = q.Param("user_dn"); !q.Has(access.MayAdmin) {
		if f.User != "" && f.User != q.Name && f.User != q.User() {
			return 0, nil, fts.Refuse(http.StatusForbidden, "user_dn: only an administrator lists the jobs of others")
		}
		f.By, f.User = q.Name, ""
	}
	if text := q.Param("state_in"); text != "" {
		states := strings.Split(text, ",")
		f.Fits = func(j *queue.JobState) bool { return slices.Contains(states, fts.State(j)) }
		limited := q.Param("limit") != ""
		if limited || window > 0 {
			f.Ended = slices.DeleteFunc(fts.Ended(), func(s string) bool { return !slices.Contains(states, s) })
		}
		if !limited && window > 0 {
			f.Open, f.Since = false, c.now().Add(-window)
		}
	}
	all, err := c.queue.Read.FindJobs(q.Context(), f)
	if err != nil {
		return 0, nil, err
	}
	rows := []map[string]any{}
	for _, j := range all {
		rows = append(rows, fts.Job(j))
	}
	return http.StatusOK, rows, nil
}

// element returns the name of a storage element in the notation that jobs use.
func element(text string) string {
	se, _ := fts.ReadSE(text)
	return cmp.Or(se, text)
}

// timeWindow parses a number of hours, or HOURS:MINUTES. 0 is no window.
func timeWindow(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	hours, minutes, _ := strings.Cut(text, ":")
	h, err := strconv.ParseUint(hours, 10, 20)
	m, minutesErr := strconv.ParseUint(cmp.Or(minutes, "0"), 10, 20)
	window := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	if err != nil || minutesErr != nil || window == 0 {
		return 0, fts.Refuse(http.StatusBadRequest, "time_window=%.50s: expected hours, or hours:minutes, above 0", text)
	}
	return window, nil
}

// mayChange returns an error for jobs of other users.
func mayChange(q *api.Call, j *queue.JobState) *fts.Error {
	if j.By != q.Name && !q.Has(access.MayApprove) || !q.Has(access.MaySubmit) && !q.Has(access.MayApprove) {
		return fts.Refuse(http.StatusForbidden, "Not enough permissions to change the job %q, which was submitted by %s", j.ID, j.By)
	}
	return nil
}

// change changes the jobs of a path that have not ended.
func (c *API) change(q *api.Call, change func(*queue.JobState) error) (int, any, error) {
	ids, jobs, refused, err := c.jobs(q)
	if err != nil {
		return 0, nil, err
	}
	ended := map[string]bool{}
	for id, j := range jobs {
		state := fts.State(j)
		ended[id] = !fts.Open(state)
		if e := mayChange(q, j); e != nil {
			refused[id] = e
		} else if !ended[id] {
			if err := change(j); err != nil {
				return 0, nil, err
			}
		}
	}
	now, err := c.queue.Read.Jobs(q.Context(), ids)
	if err != nil {
		return 0, nil, err
	}
	c.wakeAll()
	for _, j := range now {
		jobs[j.ID] = j
	}
	return multi(ids, func(id string) map[string]any {
		m := fts.Job(jobs[id])
		if m["http_message"] = nil; ended[id] {
			m["http_status"], m["http_message"] = "304 Not Modified", "The job is in a terminal state"
		}
		return m
	}, refused)
}

func (c *API) cancel(q *api.Call) (int, any, error) {
	if q.PathValue("ids") == "all" {
		return c.cancelAll(q)
	}
	return c.change(q, func(j *queue.JobState) error {
		return c.config.cancelJob(q.Context(), j, q.Name, "Job canceled by the user")
	})
}

// cancelAll cancels all jobs.
func (c *API) cancelAll(q *api.Call) (int, any, error) {
	if err := q.Need(access.MayAdmin); err != nil {
		return 0, nil, err
	}
	n, err := c.config.cancelJobs(q.Context(), q.Name, "Job canceled by the user", func(*queue.JobState) bool { return true })
	return http.StatusOK, n, err
}

// cancelVO cancels all jobs of a virtual organization.
func (c *API) cancelVO(q *api.Call) (int, any, error) {
	if err := q.Need(access.MayAdmin); err != nil {
		return 0, nil, err
	}
	vo := q.PathValue("vo")
	n, err := c.config.cancelJobs(q.Context(), q.Name, "Job canceled by the user", func(j *queue.JobState) bool { return fts.VOOf(j) == vo })
	return http.StatusOK, n, err
}

// mostFiles is the largest number of files in one request.
const mostFiles = 10_000

// cancelFiles cancels single files of a job.
func (c *API) cancelFiles(q *api.Call) (int, any, error) {
	j, err := c.job(q)
	if err != nil {
		return 0, nil, err
	}
	if e := mayChange(q, j); e != nil {
		return 0, nil, e
	}
	if fts.Multihop(j) {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "Multihop or reuse jobs must be cancelled at once (H)")
	}
	var ids []int64
	for text := range strings.SplitSeq(q.PathValue("files"), ",") {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= 0 || len(ids) == mostFiles {
			return 0, nil, fts.Refuse(http.StatusBadRequest, "file ids: expected up to %d numbers, separated by commas", mostFiles)
		}
		ids = append(ids, id)
	}
	files, err := c.queue.Read.JobFiles(q.Context(), j)
	if err != nil {
		return 0, nil, err
	}
	states, waiting := []string{}, []int64{}
	by := map[int64]string{}
	for _, f := range files {
		by[f.ID] = fts.StateOf(f)
	}
	for _, id := range ids {
		state := cmp.Or(by[id], "File does not belong to the job")
		if fts.Open(state) {
			state = fts.Canceled
			waiting = append(waiting, id)
		}
		states = append(states, state)
	}
	if err := c.requests.CancelFiles(q.Context(), waiting, "canceled by "+q.Name); err != nil {
		return 0, nil, err
	}
	if len(states) == 1 {
		return http.StatusOK, states[0], nil
	}
	return http.StatusOK, states, nil
}

// modify changes the priority of jobs.
func (c *API) modify(q *api.Call) (int, any, error) {
	var in struct {
		Params map[string]json.RawMessage `json:"params"`
	}
	if err := json.NewDecoder(q.Body).Decode(&in); err != nil {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "Badly formatted JSON request")
	}
	for name := range in.Params {
		if name != "priority" {
			return 0, nil, fts.Refuse(http.StatusBadRequest, "%.50s: only the priority of a job can be changed", name)
		}
	}
	priority, err := strconv.Atoi(strings.Trim(string(in.Params["priority"]), `"`))
	if err != nil || priority < 1 || priority > 5 {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "Invalid priority value: expected 1 to 5")
	}
	return c.change(q, func(j *queue.JobState) error { return c.queue.SetPriority(q.Context(), j.ID, priority-3) })
}
