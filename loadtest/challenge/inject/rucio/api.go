package rucio

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"weir/loadtest/challenge/inject/service"
)

// The requests of Rucio's REST API, as in rucio/web/rest/flaskapi/v1.

// An api sends requests to Rucio.
type api struct {
	client  *service.Client
	session *session
}

// do sends a request with a JSON body; in may be nil. If the token is refused, it repeats the request
// with a new one.
func (a *api) do(ctx context.Context, method, path string, in any, urgent bool) ([]byte, error) {
	r := service.Request{Method: method, Path: path, Accept: "*/*", Urgent: urgent}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		r.Body = body
	}
	_, body, err := a.client.Do(ctx, r)
	if e := service.AsError(err); err != nil && e.Status == http.StatusUnauthorized && e.Kind == "CannotAuthenticate" {
		a.session.expire()
		_, body, err = a.client.Do(ctx, r)
	}
	return body, err
}

// A did is the identifier of a file.
type did struct {
	Scope string `json:"scope"`
	Name  string `json:"name"`
}

// An rseInfo describes an RSE.
type rseInfo struct {
	Deterministic bool `json:"deterministic"`
	Write         bool `json:"availability_write"`
	Read          bool `json:"availability_read"`
}

// rse returns the description of an RSE.
func (a *api) rse(ctx context.Context, name string) (info rseInfo, err error) {
	body, err := a.do(ctx, http.MethodGet, "/rses/"+url.PathEscape(name), nil, false)
	if err == nil {
		err = json.Unmarshal(body, &info)
	}
	return info, err
}

// pfn returns the URL that Rucio gives a file at a deterministic RSE in an operation, such as
// third_party_copy_write.
func (a *api) pfn(ctx context.Context, rse, operation string, f did) (string, error) {
	id := f.Scope + ":" + f.Name
	query := url.Values{"lfn": {id}, "operation": {operation}}
	body, err := a.do(ctx, http.MethodGet, "/rses/"+url.PathEscape(rse)+"/lfns2pfns?"+query.Encode(), nil, false)
	if err != nil {
		return "", err
	}
	var all map[string]string
	err = json.Unmarshal(body, &all)
	return all[id], err
}

// A newReplica is a file at its source.
type newReplica struct {
	did
	Bytes int64  `json:"bytes"`
	Adler string `json:"adler32,omitempty"`
	PFN   string `json:"pfn,omitempty"` // of RSEs that are not deterministic
}

// register registers files at an RSE. Files that are registered stay as they are.
func (a *api) register(ctx context.Context, rse string, files []newReplica) error {
	_, err := a.do(ctx, http.MethodPost, "/replicas/", map[string]any{"rse": rse, "files": files, "ignore_availability": false}, false)
	return err
}

// A newRule is a rule for files.
type newRule struct {
	DIDs     []did  `json:"dids"`
	Account  string `json:"account"`
	Copies   int    `json:"copies"`
	RSE      string `json:"rse_expression"`
	Source   string `json:"source_replica_expression,omitempty"`
	Grouping string `json:"grouping"`
	Lifetime int    `json:"lifetime"` // seconds
	Activity string `json:"activity,omitempty"`
	Comment  string `json:"comment"` // the same for all rules of a challenge: it selects them
	Purge    bool   `json:"purge_replicas"`
}

// addRule adds a rule for each file and returns their ids in the same order.
func (a *api) addRule(ctx context.Context, r newRule) (ids []string, err error) {
	body, err := a.do(ctx, http.MethodPost, "/rules/", r, false)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, &ids); err != nil || len(ids) != len(r.DIDs) {
		return nil, &service.Error{Request: "POST /rules/", Err: fmt.Errorf("malformed response: %d ids for %d files", len(ids), len(r.DIDs))}
	}
	return ids, nil
}

// A rule is a rule that Rucio has.
type rule struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	RSE     string `json:"rse_expression"`
	State   string `json:"state"` // OK, REPLICATING, STUCK, SUSPENDED, INJECT, WAITING_APPROVAL
	Error   string `json:"error"`
	Updated string `json:"updated_at"`
}

// rules returns the rules of an account with a comment.
func (a *api) rules(ctx context.Context, scope, account, comment string) (all []rule, err error) {
	query := url.Values{"scope": {scope}, "account": {account}, "comments": {comment}}
	body, err := a.do(ctx, http.MethodGet, "/rules/?"+query.Encode(), nil, false)
	if err != nil {
		return nil, err
	}
	return all, lines(body, func(text []byte) error {
		var r rule
		err := json.Unmarshal(text, &r)
		all = append(all, r)
		return err
	})
}

// lines passes each line of a list to f.
func lines(body []byte, f func([]byte) error) error {
	for line := range bytes.Lines(body) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := f(line); err != nil {
			return &service.Error{Request: "list", Err: fmt.Errorf("malformed response: %w", err)}
		}
	}
	return nil
}

// endRule ends a rule, so that Rucio's judge-cleaner deletes it with its replicas. With cancel the
// transfers of the rule are cancelled at once. DELETE would keep the rule for an hour. A rule that does
// not exist is no error.
func (a *api) endRule(ctx context.Context, id string, cancel bool) error {
	options := map[string]any{"purge_replicas": true, "lifetime": 0}
	if cancel {
		options["state"], options["cancel_requests"] = "SUSPENDED", true
	}
	_, err := a.do(ctx, http.MethodPut, "/rules/"+id, map[string]any{"options": options}, true)
	if err != nil && service.AsError(err).Status == http.StatusNotFound {
		return nil
	}
	return err
}

// replicas returns the names of the files that have a replica at an RSE, in whatever state it is.
func (a *api) replicas(ctx context.Context, scope, rse string, names []string) (map[string]bool, error) {
	in := map[string]any{"all_states": true, "ignore_availability": true, "rse_expression": rse, "resolve_archives": false}
	var dids []did
	for _, n := range names {
		dids = append(dids, did{scope, n})
	}
	in["dids"] = dids
	body, err := a.do(ctx, http.MethodPost, "/replicas/list", in, false)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	return has, lines(body, func(text []byte) error {
		var f struct {
			Name   string         `json:"name"`
			States map[string]any `json:"states"`
			RSEs   map[string]any `json:"rses"`
		}
		err := json.Unmarshal(text, &f)
		_, stated := f.States[rse]
		_, listed := f.RSEs[rse]
		has[f.Name] = has[f.Name] || stated || listed
		return err
	})
}

// parseDate parses a time in Rucio's notation. It returns the zero time for other texts.
func parseDate(text string) time.Time {
	t, _ := time.Parse(dateFormat, strings.TrimSpace(text))
	return t
}
