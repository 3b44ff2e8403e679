package dashboard

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"os"
	"time"

	"weir/internal/unit"
	"weir/loadtest/report"
	"weir/loadtest/results"
	"weir/web"
)

//go:embed live.html.tmpl
var liveText string

//go:embed plain.html.tmpl
var plainText string

//go:embed plain.css
var plainStyle string

// routes returns the handlers of all paths that are served. No path contains input of a browser.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /plain", s.plain)
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /report.html", s.report)
	for path, kind := range map[string]string{"/live.js": "text/javascript; charset=utf-8", "/live.css": "text/css; charset=utf-8"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			text, ok := web.Bundle(path[1:])
			if !ok {
				http.NotFound(w, r)
				return
			}
			asset(w, r, kind, text)
		})
	}
	mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, r *http.Request) {
		asset(w, r, "text/css; charset=utf-8", web.Theme()+report.Style()+plainStyle)
	})
	return mux
}

func asset(w http.ResponseWriter, r *http.Request, kind, text string) {
	w.Header().Set("Content-Type", kind)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader([]byte(text)))
}

// page serves the live page, or the plain page if weir was built without scripts.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	if _, ok := web.Bundle("live.js"); !ok {
		s.plain(w, r)
		return
	}
	_, styled := web.Bundle("live.css")
	answer(w, http.StatusOK, liveText, struct{ Styled bool }{styled})
}

// refreshEvery is the interval at which the plain page reloads itself.
const refreshEvery = 5 // seconds

// A plainPage contains the data of the page without scripts.
type plainPage struct {
	Title, State, Missing, Problem, Key string
	Refresh                             int // seconds; 0: never, the run is over
	About                               *about
	Found                               *Found
	Until                               string
	Now                                 now
	Runs                                []entry
	Steps                               []plainStep
	Figures                             []Drawing
}

type plainStep struct{ Step, Load, Throughput, Operations, P50, P99, Errors, Held string }

// plain serves a page that needs no script: it reloads itself.
func (s *Server) plain(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("run")
	run, err := s.hub.get(s.ctx, key)
	if err != nil {
		refuse(w, http.StatusNotFound, err.Error())
		return
	}
	defer run.leave()
	list, _, _, _ := s.hub.choice()
	p := run.plain()
	p.Key, p.Runs = key, list
	if _, ok := web.Bundle("live.js"); !ok {
		p.Missing = web.Missing
	}
	answer(w, http.StatusOK, plainText, p)
}

func (s *shown) plain() plainPage {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := plainPage{Title: s.title(), Now: s.now(s.clock()), Refresh: refreshEvery, Problem: s.problem}
	if s.about != nil {
		p.About = s.describe()
	}
	p.State = p.Now.words()
	if s.found != nil {
		p.Found, p.Until = s.found, unit.Seconds(s.found.Until)
		p.Figures = s.found.Drawings
		if s.found.Final {
			p.Refresh = 0
		}
	}
	for _, st := range s.h.steps {
		p.Steps = append(p.Steps, st.plain(p.Now.State == running_ && st.Step == p.Now.Step))
	}
	return p
}

// plain returns the step as text; now is true if the step is in progress.
func (t *stepTally) plain(now bool) plainStep {
	of := func(n int64) float64 { return float64(n) / max(t.Held, 1e-9) }
	p := plainStep{Step: fmt.Sprint(t.Step), Load: fmt.Sprint(t.Clients), Held: unit.Seconds(t.Held), Errors: unit.Count(float64(t.Errors)),
		Throughput: unit.Bits(of(t.Moved)), Operations: unit.Count(of(t.Done)) + "/s", P50: unit.Seconds(t.P50), P99: unit.Seconds(t.P99)}
	if t.Rate > 0 {
		p.Load = unit.Count(t.Rate) + "/s"
	}
	if now && t.Failing > 0 {
		p.Errors += ", " + unit.Percent(t.Failing) + " in the last second"
	}
	if t.Broken {
		p.Held += ", aborted"
	}
	return p
}

// words describes the progress of the run, and its workers.
func (n *now) words() string {
	if n.Workers == "" {
		return n.progress()
	}
	return n.progress() + " " + n.Workers + "."
}

func (n *now) progress() string {
	switch n.State {
	case waiting:
		return "Waiting for the run to begin."
	case preparing:
		return "Preparing the run; no load yet."
	case ended:
		return "The run is over."
	case broken:
		return "The run was aborted before its end."
	}
	text := fmt.Sprintf("Running: step %d", n.Step)
	if n.Of > 0 {
		text += fmt.Sprintf(" (%d of %d)", n.Place, n.Of)
	}
	text += fmt.Sprintf(", %s, %.0f clients", n.Phase, n.Clients)
	if n.AtMost {
		return text + "; at most " + unit.Seconds(n.Left) + " left."
	}
	return text + "; about " + unit.Seconds(n.Left) + " left."
}

func answer(w http.ResponseWriter, code int, text string, data any) {
	t, err := template.New("page").Parse(text)
	var out bytes.Buffer
	if err == nil {
		err = t.Execute(&out, data)
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(out.Bytes()) // a write error means that the browser has disconnected
}

// reportPolicy lets the report's own scripts run, in a sandbox: the report was read from a folder
// to which others may have written.
const reportPolicy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"

// report serves the report in the run directory, unchanged.
func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	run, err := s.hub.get(s.ctx, r.URL.Query().Get("run"))
	if err != nil {
		refuse(w, http.StatusNotFound, err.Error())
		return
	}
	defer run.leave()
	b, err := readReport(run.dir)
	if err != nil {
		refuse(w, http.StatusNotFound, "No report yet: it is written at the end of the run. For an aborted run, create it with `weir report`.")
		return
	}
	w.Header().Set("Content-Security-Policy", reportPolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

// mostReport is the largest number of bytes of a report that is served.
const mostReport = 64 << 20

// readReport reads the report of dir. It does not follow a link out of dir.
func readReport(dir string) (b []byte, err error) {
	if !hasReport(dir) {
		return nil, os.ErrNotExist
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open(results.ReportFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mostReport))
}
