package coordinator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	reflector "github.com/invopop/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/internal/wire"
	"weir/lab/labtest"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/api"
	v1 "weir/transfer/api/v1"
	"weir/transfer/fts"
	"weir/transfer/fts/rest"
	"weir/transfer/transfertest"
)

type object = map[string]any

// apiWriter creates the OpenAPI description from operations.
type apiWriter struct {
	t       *testing.T
	reflect reflector.Reflector
	schemas object
	types   map[string]reflect.Type
}

func newAPIWriter(t *testing.T) *apiWriter {
	t.Helper()
	w := &apiWriter{t: t, schemas: object{}, types: map[string]reflect.Type{}}
	w.reflect = reflector.Reflector{Anonymous: true, AllowAdditionalProperties: true, Namer: w.name}
	require.NoError(t, w.reflect.AddGoComments("weir", "transfer"))
	require.NoError(t, w.reflect.AddGoComments("weir", "internal/wire"))
	return w
}

// name returns the name of a type. It fails the test if two types have the same name.
func (w *apiWriter) name(t reflect.Type) string {
	name := t.Name()
	if name == "" {
		return ""
	}
	name = strings.ToUpper(name[:1]) + name[1:]
	if strings.HasSuffix(t.PkgPath(), "/fts") {
		name = "FTS" + name
	}
	if other := w.types[name]; other != nil && other != t {
		w.t.Errorf("%v and %v have the same name", other, t)
	}
	w.types[name] = t
	return name
}

// schema returns the schema of a type, and adds the schemas of its parts to the components.
func (w *apiWriter) schema(t reflect.Type) any {
	s := w.reflect.ReflectFromType(t)
	defs := s.Definitions
	s.Definitions, s.Version = nil, ""
	for name, one := range defs {
		w.schemas[name] = plain(w.t, one)
	}
	return plain(w.t, s)
}

// plain returns a schema as JSON with references to components.
func plain(t *testing.T, s *reflector.Schema) (out any) {
	text, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(bytes.ReplaceAll(text, []byte(`"#/$defs/`), []byte(`"#/components/schemas/`)), &out)
	}
	require.NoError(t, err)
	return out
}

// parameters describes the parameters of the query and of the path of an operation.
func parameters(op api.Operation) []any {
	list := []any{}
	for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(op.Pattern, -1) {
		kind := object{"type": "string"}
		if m[1] == "number" {
			kind = object{"type": "integer", "minimum": 1}
		}
		list = append(list, object{"name": m[1], "in": "path", "required": true, "schema": kind})
	}
	text := map[string]string{
		"from":  "the first name",
		"after": "the last row of the page before: its id or name, or its time in nanoseconds", "n": "number of rows at most",
		"before": "only rows with lower ids", "status": "only requests with this status", "open": "true: only requests that have not ended",
		"to": "only requests to this site", "dataset": "only requests of this dataset", "by": "only requests of this user",
		"name": "name of the dataset", "state": "only files in this state; may be repeated", "item": "only attempts at this file",
		"epoch": "epoch of the last attempt of the page before", "late": "false: the last attempt of the page before was not late",
		"file": "name of a file", "source": "only links from this site", "dest": "only links to this site", "site": "name of the site",
		"se":      "storage element, such as https://se.example.org",
		"storage": "such as https://se.example.org, or the name of a site", "user_dn": "name of the user",
		"files": "fields of files to answer with, separated by commas", "limit": "number of jobs at most",
		"state_in":    "states, separated by commas; those of ended jobs need limit or time_window",
		"time_window": "only jobs that ended in the last hours, or HOURS:MINUTES; with state_in",
		"vo_name":     "name of the virtual organization", "dlg_id": "id of the user's credentials",
		"source_se": "storage element of the sources", "dest_se": "storage element of the destinations",
	}
	for _, name := range op.About.Params {
		one := object{"name": name, "in": "query", "schema": object{"type": "string"}}
		switch byName := strings.Contains(op.Pattern, "/dataset"); {
		case name == "n":
			one["schema"] = object{"type": "integer", "minimum": 1}
		case name == "after" && strings.HasSuffix(op.Pattern, "/events"):
			one["schema"] = object{"type": "integer", "minimum": -1}
			text[name] = "id of the last event that is known; -1: none, 0: the latest"
		case name == "before", name == "item", name == "epoch", name == "limit", name == "after" && !byName:
			one["schema"] = object{"type": "integer", "minimum": 0}
		}
		if name == "state" {
			one["schema"] = object{"type": "array", "items": object{"type": "string"}}
		}
		if text[name] != "" {
			one["description"] = text[name]
		}
		list = append(list, one)
	}
	return list
}

// operation describes one route.
func (w *apiWriter) operation(op api.Operation) object {
	method, path, _ := strings.Cut(op.Pattern, " ")
	media := op.Media
	if media == "" {
		media = "application/json"
	}
	id := strings.ToLower(method) + regexp.MustCompile(`\W+`).ReplaceAllString(strings.TrimPrefix(path, "/api/v1"), "_")
	answer, failed := object{}, reflect.TypeFor[wire.ErrorBody]()
	if strings.HasPrefix(path, rest.Path) {
		failed = reflect.TypeFor[fts.Refusal]()
	}
	if op.Out != nil {
		answer = object{"schema": w.schema(op.Out)}
		if media == "text/event-stream" { // for an event
			answer["schema"] = object{"type": "object", "required": []any{"data"}, "properties": object{"data": object{"type": "string",
				"contentMediaType": "application/json", "contentSchema": answer["schema"]}}}
		}
		if op.Many {
			answer["schema"] = object{"oneOf": []any{answer["schema"], object{"type": "array", "items": answer["schema"]}}}
		}
	}
	refused := w.schema(failed)
	if op.Many { // for one job, or for a list in which some jobs are refused (207)
		refused = object{"anyOf": []any{refused, w.schema(reflect.TypeFor[fts.JobRefusal]()), object{"type": "array"}}}
	}
	status, success := "200", object{"description": "success", "content": object{media: answer}}
	if op.Out == nil && method == http.MethodDelete && strings.HasPrefix(path, rest.Path) {
		status, success = "204", object{"description": "success, without a body"}
	}
	out := object{
		"operationId": strings.TrimRight(id, "_"), "summary": op.About.Summary, "tags": []any{tagOf(path)}, "parameters": parameters(op),
		"responses": object{
			status:    success,
			"default": object{"description": "refused or failed", "content": object{"application/json": object{"schema": refused}}},
		},
	}
	if op.In != nil || method == http.MethodPost {
		in := any(object{"type": "object"})
		if op.In != nil {
			in = w.schema(op.In)
		}
		out["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": in}}}
	}
	if op.Public {
		out["security"] = []any{}
	}
	if op.Role != "" {
		out["x-role"] = op.Role
	}
	return out
}

func tagOf(path string) string {
	switch {
	case strings.HasPrefix(path, rest.Path):
		return "fts"
	case strings.HasPrefix(path, "/api/v1/agent/"):
		return "agents"
	case strings.HasPrefix(path, "/api/v1/"):
		return strings.Split(path, "/")[3]
	}
	return "service"
}

// reachable adds the names of the components that a part of a schema references.
func (w *apiWriter) reachable(part any, all map[string]bool) {
	switch part := part.(type) {
	case object:
		if ref, is := part["$ref"].(string); is {
			name := strings.TrimPrefix(ref, "#/components/schemas/")
			if !all[name] {
				all[name] = true
				w.reachable(w.schemas[name], all)
			}
		}
		for _, one := range part {
			w.reachable(one, all)
		}
	case []any:
		for _, one := range part {
			w.reachable(one, all)
		}
	}
}

// allowNull describes null as equivalent to an absent property, in the schemas that are used only
// in bodies of requests to /api.
func (w *apiWriter) allowNull(all []api.Operation) {
	in, others := map[string]bool{}, map[string]bool{}
	for _, op := range all {
		if op.In != nil && strings.Contains(op.Pattern, " /api/") {
			w.reachable(w.schema(op.In), in)
		} else if op.In != nil {
			w.reachable(w.schema(op.In), others)
		}
		if op.Out != nil {
			w.reachable(w.schema(op.Out), others)
		}
	}
	for name := range in {
		s, _ := w.schemas[name].(object)
		properties, _ := s["properties"].(object)
		required, _ := s["required"].([]any)
		for property, one := range properties {
			one, is := one.(object)
			if others[name] || !is || slices.Contains(required, any(property)) {
				continue
			}
			if kind, simple := one["type"].(string); simple {
				one["type"] = []any{kind, "null"}
			} else {
				properties[property] = object{"anyOf": []any{one, object{"type": "null"}}}
			}
		}
	}
}

// writeAPI returns the OpenAPI description of operations.
func writeAPI(t *testing.T, all []api.Operation) []byte {
	t.Helper()
	w, paths := newAPIWriter(t), object{}
	for _, op := range all {
		method, path, _ := strings.Cut(op.Pattern, " ")
		if paths[path] == nil {
			paths[path] = object{}
		}
		at := paths[path].(object)
		if at[strings.ToLower(method)] != nil {
			t.Errorf("%s is registered twice", op.Pattern)
		}
		at[strings.ToLower(method)] = w.operation(op)
	}
	w.allowNull(all)
	text, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{"title": "weir coordinator", "version": "1", "description": "Verified transfer of datasets. /fts answers as FTS3. " +
			"x-role is the role that a token needs. Unknown fields in bodies of /api are refused. Durations are in seconds; fields that end " +
			"with _ns are in nanoseconds.",
			"license": object{"name": "Apache 2.0", "identifier": "Apache-2.0"}},
		"servers": []any{object{"url": "/"}}, "security": []any{object{"token": []any{}}}, "paths": paths,
		"components": object{"schemas": w.schemas, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}}},
	}, "", " ")
	require.NoError(t, err)
	return append(text, '\n')
}

// The description is generated from the routes, and is valid.
func TestOpenAPI(t *testing.T) {
	h := start(t, Config{Plain: true})
	t.Chdir("../..") // for comments
	const path = "transfer/api/v1/openapi.json"
	want := writeAPI(t, h.routes.Operations)
	if os.Getenv("WEIR_UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, want, 0o600))
		return
	}
	if diff := cmp.Diff(string(want), string(v1.OpenAPI())); diff != "" {
		t.Errorf("%s differs from the routes: WEIR_UPDATE=1 writes it (-want +got):\n%s", path, diff)
	}
	if got := string(h.ask(t, "GET", v1.OpenAPIPath, "", nil, http.StatusOK)); got != string(v1.OpenAPI()) {
		t.Errorf("%s answers with something else: %.200s", v1.OpenAPIPath, got)
	}
	validate := filepath.Join(labtest.Python(t), "openapi-spec-validator")
	if _, err := os.Stat(validate); err != nil {
		tier.Without(t, "openapi-spec-validator", "the Python packages are older than lab/python.txt: make needs")
	}
	if said, err := exec.CommandContext(t.Context(), validate, path).CombinedOutput(); err != nil {
		t.Errorf("openapi-spec-validator: %v\n%s", err, said)
	}
}

// ask sends a request and returns the body of the response, which must have the given status.
func (h *service) ask(t *testing.T, method, path, token string, body any, want int) []byte {
	t.Helper()
	var text io.Reader = http.NoBody
	if body != nil {
		b, err := json.Marshal(body)
		require.NoError(t, err)
		text = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, h.URL()+path, text)
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	if res.StatusCode != want {
		t.Errorf("%s %s: %s: %s", method, path, res.Status, got)
	}
	return got
}

// The responses of a coordinator that has moved files match their schemas, for each GET request and
// some other requests.
func TestAnswersFitTheirSchemas(t *testing.T) {
	h := start(t, Config{Plain: true, Approve: -1, JobArea: tpc.Loopback})
	raw, err := h.Admin()
	require.NoError(t, err)
	_, b, q := h.pair(3)
	leases := b.WaitWork()
	bad := transfertest.Verified(leases[0])
	bad.Fault, bad.Reason, bad.Verified = transfer.SourceBad, "it is missing", false
	if _, err := b.Report(bad, transfertest.Verified(leases[1])); err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(v1.OpenAPI()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	require.NoError(t, c.AddResource("https://weir.invalid/openapi.json", doc))
	fitsAs := func(method, path, described, status string, body []byte) {
		t.Helper()
		pointer := strings.NewReplacer("~", "~0", "/", "~1").Replace(described)
		s, err := c.Compile("https://weir.invalid/openapi.json#/paths/" + pointer + "/" + strings.ToLower(method) +
			"/responses/" + status + "/content/application~1json/schema")
		if err != nil {
			t.Errorf("%s %s: %v", method, described, err)
			return
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err == nil {
			err = s.Validate(value)
		}
		if err != nil {
			t.Errorf("%s %s: %v\n%.500s", method, path, err, body)
		}
	}
	fits := func(method, path, described string, body []byte) {
		t.Helper()
		fitsAs(method, path, described, "200", body)
	}
	unknown := "/fts/jobs/" + fts.NewID()
	for _, method := range []string{"GET", "DELETE"} {
		fitsAs(method, unknown, "/fts/jobs/{ids}", "default", h.ask(t, method, unknown, raw, nil, http.StatusNotFound))
	}
	h.ask(t, "POST", "/fts/ban/dn", raw, fts.NewUserBan{DN: "mallory"}, http.StatusOK)
	if gone := h.ask(t, "DELETE", "/fts/ban/dn?user_dn=mallory", raw, nil, http.StatusNoContent); len(gone) > 0 {
		t.Errorf("%s", gone)
	}
	for path, methods := range doc.(object)["paths"].(object) {
		for method, op := range methods.(object) {
			without := op.(object)["responses"].(object)["204"] != nil
			removes := method == "delete" && regexp.MustCompile("^/fts/(ban|config|delegation)/").MatchString(path)
			if without != removes {
				t.Errorf("%s %s: without a body: %v", method, path, without)
			}
		}
	}
	for path, want := range map[string]int{
		"?from=/no": 1, "?from=/store/run1": 1, "?after=/store/run1": 0, "?from=/store/x": 0, "?from=/no&after=/store/run1": 0,
	} {
		text := h.ask(t, "GET", "/api/v1/datasets"+path, raw, nil, http.StatusOK)
		var list []any
		if err := json.Unmarshal(text, &list); err != nil || len(list) != want {
			t.Errorf("datasets%s: %s, want %d", path, text, want)
		}
	}
	job := fts.NewJob{Files: []fts.NewJobFile{{Sources: []string{"https://127.0.0.1:1/a"}, Destinations: []string{"https://127.0.0.1:2/a"}}}}
	text := h.ask(t, "POST", "/fts/jobs", raw, job, http.StatusOK)
	fits("POST", "/fts/jobs", "/fts/jobs", text)
	var made fts.SubmittedJob
	require.NoError(t, json.Unmarshal(text, &made))
	text = h.ask(t, "POST", "/api/v1/tokens", raw, transfer.NewToken{Subject: "x", Roles: []string{access.MayRead}, LifeSeconds: 60},
		http.StatusOK)
	fits("POST", "/api/v1/tokens", "/api/v1/tokens", text)
	fill := strings.NewReplacer("{number}", fmt.Sprint(q.ID), "{ids}", made.ID, "{id}", fts.DelegationID("admin"))
	asked := 0
	for _, op := range h.routes.Operations {
		method, described, _ := strings.Cut(op.Pattern, " ")
		path := fill.Replace(described)
		if method != http.MethodGet || op.Media != "" || op.Out == nil || strings.Contains(path, "{") || strings.Contains(path, "/scans/") ||
			strings.Contains(path, "/delegation/") || strings.Contains(path, "/archive/") {
			continue
		}
		if strings.HasPrefix(path, "/api/v1/dataset") {
			path += "?name=/store/run1"
		}
		fits(method, path, described, h.ask(t, method, path, raw, nil, http.StatusOK))
		asked++
	}
	if asked < 20 {
		t.Errorf("%d requests", asked)
	}
}

// Errors have stable codes.
func TestErrorsHaveCodes(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Plain: true})
	raw, err := h.Admin()
	require.NoError(t, err)
	for _, one := range []struct {
		method, path, token string
		body                any
		status              int
		code                string
	}{
		{"GET", "/api/v1/requests/77", raw, nil, http.StatusNotFound, wire.CodeNotFound},
		{"GET", "/api/v1/requests/x", raw, nil, http.StatusBadRequest, wire.CodeBadRequest},
		{"GET", "/api/v1/requests?n=x", raw, nil, http.StatusBadRequest, wire.CodeBadRequest},
		{"GET", "/api/v1/nothing", raw, nil, http.StatusNotFound, wire.CodeNotFound},
		{"GET", "/api/v1/requests", "", nil, http.StatusUnauthorized, wire.CodeUnauthorized},
		{"POST", "/api/v1/requests", raw, object{"datset": "/x"}, http.StatusBadRequest, wire.CodeMalformed},
		{"POST", "/api/v1/requests", raw, object{"comment": strings.Repeat("x", api.Large)}, http.StatusRequestEntityTooLarge, wire.CodeTooLarge},
		{"POST", "/api/v1/agent/work", raw, object{"site": "A", "session": "x"}, http.StatusGone, wire.CodeGone},
	} {
		var e wire.ErrorBody
		text := h.ask(t, one.method, one.path, one.token, one.body, one.status)
		if err := json.Unmarshal(text, &e); err != nil || e.Code != one.code || e.Error == "" {
			t.Errorf("%s %s: %s, want the code %s", one.method, one.path, text, one.code)
		}
	}
}
