package thirdparty

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"weir/internal/pause"
	"weir/internal/say"
	"weir/internal/tape"
	"weir/internal/tpc"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/dispatch"
	"weir/transfer/queue"
)

// Limits of requests to tape systems.
const (
	tapeRound   = 20_000           // files that are processed in a round
	tapeMost    = 1000             // files of one request
	tapeKept    = 10 * time.Minute // time for which the URL of an API is kept
	longestPoll = 5 * time.Minute
	tapeGiveUp  = 24 * time.Hour // after which releases and cancellations are no longer tried
)

// TapeAll polls tape systems until ctx ends, each site independently: a silent site delays its own
// files only.
func (c *Copier) TapeAll(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	var mu sync.Mutex
	busy, apis := map[string]bool{}, map[string]*keptAPI{}
	for ; ctx.Err() == nil; pause.For(ctx, time.Second) {
		mu.Lock()
		others := slices.Collect(maps.Keys(busy))
		mu.Unlock()
		due, err := c.queue.TapeDue(ctx, tapeRound, others...)
		if ctx.Err() != nil {
			return
		}
		c.health.Database(err)
		by := map[string][]queue.TapeFile{}
		for _, f := range due {
			by[f.Site] = append(by[f.Site], f)
		}
		for site, files := range by {
			if apis[site] == nil {
				apis[site] = &keptAPI{}
			}
			api := apis[site]
			mu.Lock()
			busy[site] = true
			mu.Unlock()
			asking.Go(func() {
				c.askSite(ctx, api, files)
				mu.Lock()
				defer mu.Unlock()
				delete(busy, site)
			})
		}
	}
}

// askSite sends the requests for files to the tape system of a site.
func (c *Copier) askSite(ctx context.Context, k *keptAPI, files []queue.TapeFile) {
	for _, some := range c.tapeBulks(ctx, files) {
		if ctx.Err() != nil {
			return
		}
		news := c.askTape(ctx, k, some)
		if news == nil {
			return
		}
		c.health.Database(c.queue.TapeReport(context.WithoutCancel(ctx), news)) // also for a response that came while ctx ended
		c.wake()
	}
}

// A keptAPI is the API of a site's tape system, which is discovered again after until.
type keptAPI struct {
	api   tape.API
	until time.Time
}

// A tapeBulk is a group of files of one request to a tape system.
type tapeBulk struct {
	kind          queue.TapeKind
	step          queue.TapeStep
	site, request string
	end           transfer.End // has the credentials
	failed        error        // there are no credentials
	files         []queue.TapeFile
}

// tapeBulks groups files by the request that they need.
func (c *Copier) tapeBulks(ctx context.Context, due []queue.TapeFile) (bulks []*tapeBulk) {
	for _, f := range due {
		end, err := c.tapeEnd(ctx, f)
		b := tapeBulk{kind: f.Kind, step: f.Step, site: f.Site, request: f.Request, end: end, failed: err}
		i := slices.IndexFunc(bulks, func(o *tapeBulk) bool {
			return o.kind == b.kind && o.step == b.step && o.site == b.site && o.request == b.request &&
				o.end.Token == b.end.Token && o.end.Cert == b.end.Cert &&
				(o.failed == nil) == (err == nil) && len(o.files) < mostOfBulk(b.step)
		})
		if i < 0 {
			i = len(bulks)
			bulks = append(bulks, &b)
		}
		bulks[i].files = append(bulks[i].files, f)
	}
	return bulks
}

// mostOfBulk returns the maximum number of files of one request: the progress of a request is
// polled as a whole.
func mostOfBulk(s queue.TapeStep) int {
	if s == queue.TapePoll {
		return tapeRound
	}
	return tapeMost
}

// tapeEnd returns the end of a copy that has the tape system, with the credentials of the job.
func (c *Copier) tapeEnd(ctx context.Context, f queue.TapeFile) (transfer.End, error) {
	l := transfer.Lease{Source: transfer.End{Site: f.Site}, Dest: transfer.End{Site: f.Site}}
	tokens, _, err := c.access.TokensOf(ctx, f.Item)
	if f.Kind == queue.Archive { // the other token may have expired
		tokens.Sources = nil
	} else {
		tokens.Dest = access.JobToken{}
	}
	if err == nil {
		err = c.access.Lend(ctx, &l, tokens)
	}
	if f.Kind == queue.Archive {
		return l.Dest, err
	}
	return l.Source, err
}

// tapeAPI returns the API of a site's tape system.
func (c *Copier) tapeAPI(ctx context.Context, k *keptAPI, site string, end transfer.End) (tape.API, error) {
	known, _ := c.sites.Get(site)
	guard := c.sites.Guard(site)
	if c.now().After(k.until) {
		api, err := tape.Discover(ctx, c.tpc.Client, tpc.Target{URL: known.URL, Guard: guard})
		if err != nil {
			return api, err
		}
		*k = keptAPI{api, c.now().Add(tapeKept)}
	}
	api := k.api
	api.Target.Token, api.Target.Cert = end.Token, end.Cert
	return api, nil
}

// tapePath returns the path of a file for the tape system, which is the path of its URL.
func (c *Copier) tapePath(f queue.TapeFile) string {
	site, _ := c.sites.Get(f.Site)
	u, err := url.Parse(dispatch.FileURL(site.URL, f.Path))
	if err != nil {
		return "/" + f.Path
	}
	return tape.Clean(u.Path)
}

// askTape sends one request to a tape system. It returns the new states of the files, or nil if ctx
// ended before the response.
func (c *Copier) askTape(ctx context.Context, k *keptAPI, b *tapeBulk) []queue.TapeNews {
	if b.failed != nil {
		return c.tapeFailed(ctx, b, b.failed)
	}
	api, err := c.tapeAPI(ctx, k, b.site, b.end)
	if err != nil {
		return c.tapeFailed(ctx, b, err)
	}
	paths := make([]string, len(b.files))
	for i, f := range b.files {
		paths[i] = c.tapePath(f)
	}
	said := func(string) (there bool, failed string) { return false, "" }
	switch {
	case b.step == queue.TapeAsk:
		b.request, err = api.Stage(ctx, c.stageFiles(api, b, paths))
	case b.step == queue.TapeRelease:
		err = api.Release(ctx, b.request, paths)
	case b.step == queue.TapeCancel:
		err = api.Cancel(ctx, b.request, paths)
	case b.kind == queue.Stage:
		var all map[string]tape.Status
		all, err = api.Progress(ctx, b.request)
		said = func(path string) (bool, string) { return all[path].OnDisk, all[path].Failed }
	default:
		var all map[string]tape.Place
		all, err = placesOf(ctx, api, paths)
		said = func(path string) (bool, string) { return all[path].OnTape, all[path].Failed }
	}
	if err != nil {
		return c.tapeFailed(ctx, b, err)
	}
	return c.tapeNews(b, paths, said)
}

// tapeNews returns the new states of files after a request; said returns the tape system's response
// for a path.
func (c *Copier) tapeNews(b *tapeBulk, paths []string, said func(string) (there bool, failed string)) []queue.TapeNews {
	now, news := c.now(), make([]queue.TapeNews, len(b.files))
	for i, f := range b.files {
		n := queue.TapeNews{TapeFile: f}
		n.Request = b.request
		switch f.Step {
		case queue.TapeAsk:
			n.Step, n.Due = queue.TapePoll, now
		case queue.TapePoll:
			if n.There, n.Failed = said(paths[i]); n.Failed != "" {
				n.Failed = tapeScope(f.Kind) + " [5] " + n.Failed
			}
			n.Due = now.Add(pollPause(now.Sub(f.Began)))
			c.tapeTimeout(&n, "")
		default:
			n.Step = queue.TapeOver
		}
		news[i] = n
	}
	return news
}

// stageFiles returns the files of a staging request.
func (c *Copier) stageFiles(api tape.API, b *tapeBulk, paths []string) []tape.File {
	files := make([]tape.File, len(paths))
	for i, f := range b.files {
		files[i] = tape.File{Path: paths[i], Lifetime: cmp.Or(f.Pin, f.Until.Sub(f.Began))}
		if f.Metadata != "" {
			text, err := json.Marshal(map[string]json.RawMessage{api.Site: json.RawMessage(f.Metadata)})
			if err == nil {
				files[i].Metadata = text
			}
		}
	}
	return files
}

// placesOf requests the places of any number of files.
func placesOf(ctx context.Context, api tape.API, paths []string) (map[string]tape.Place, error) {
	all := map[string]tape.Place{}
	for some := range slices.Chunk(paths, tapeMost) {
		part, err := api.Places(ctx, some)
		if err != nil {
			return nil, err
		}
		for path, p := range part {
			all[path] = p
		}
	}
	return all, nil
}

// pollPause returns the time to the next poll of a file that has waited for since: tape takes
// minutes to hours.
func pollPause(since time.Duration) time.Duration {
	return min(max(since/10, time.Second), longestPoll)
}

// tapeScope returns the beginning of FTS's reasons.
func tapeScope(k queue.TapeKind) string {
	if k == queue.Archive {
		return "ARCHIVING"
	}
	return "STAGING"
}

// tapeTimeout fails a file whose time is over; why is the last error.
func (c *Copier) tapeTimeout(n *queue.TapeNews, why string) {
	if n.There || n.Failed != "" || c.now().Before(n.Until) {
		return
	}
	what := "bring-online timeout has been exceeded"
	if n.Kind == queue.Archive {
		what = "archive timeout has been exceeded"
	}
	n.Failed = tapeScope(n.Kind) + " [110] " + what
	if why != "" {
		n.Failed += ": " + why
	}
	if n.Step = queue.TapeOver; n.Kind == queue.Stage && n.Request != "" {
		n.Step, n.Due = queue.TapeCancel, c.now()
	}
}

// tapeFailed returns the new states of files after a request that failed. The request is repeated,
// unless that is useless. If a request failed because ctx has ended, the states do not change.
func (c *Copier) tapeFailed(ctx context.Context, b *tapeBulk, err error) []queue.TapeNews {
	if ctx.Err() != nil {
		return nil
	}
	now, why := c.now(), say.Bounded(err.Error())
	class, after := classOf(err)
	kind := tpc.KindOf(err)
	final := kind == tpc.Unsupported || kind == tpc.Missing || access.IsFinal(err)
	if spent := c.access.Expired(b.end.Token, 0); class == transfer.Denied && spent != nil {
		final, why = true, why+"; "+say.Bounded(spent.Error())
	}
	c.log.Warn("a tape system cannot be asked", "site", b.site, "files", len(b.files), "error", why)
	news := make([]queue.TapeNews, len(b.files))
	for i, f := range b.files {
		n := queue.TapeNews{TapeFile: f}
		n.Due = now.Add(max(after, pollPause(now.Sub(f.Began))))
		switch {
		case f.Step == queue.TapeRelease || f.Step == queue.TapeCancel:
			if final || class == transfer.Denied || now.Sub(f.Until) > tapeGiveUp {
				n.Step = queue.TapeOver // its copy on disk ends by itself
			}
		case final && kind == tpc.Missing && f.Step == queue.TapePoll && f.Kind == queue.Stage:
			n.Step, n.Request = queue.TapeAsk, "" // the tape system has forgotten the request
			c.tapeTimeout(&n, why)
		case final:
			n.Failed = fmt.Sprintf("%s [95] %s: %s", tapeScope(f.Kind), b.site, why)
			n.Step = queue.TapeOver
		default:
			c.tapeTimeout(&n, why)
		}
		news[i] = n
	}
	return news
}
