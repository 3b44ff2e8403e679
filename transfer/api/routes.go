package api

import (
	"cmp"
	"net/http"

	"weir/internal/wire"
	"weir/transfer/access"
)

// Largest request bodies, in bytes.
const (
	Small  = 64 << 10
	Middle = 4 << 20
	Large  = 32 << 20
)

// Routes registers operations on a server and stores their descriptions. It is complete before the
// server accepts requests.
type Routes struct {
	Server     *wire.Server
	Refuser    *Refuser
	Operations []Operation
}

// Handle registers f for a pattern of http.ServeMux and callers with the role ("": f checks). A
// body has at most most bytes. An invalid parameter of the query is an error, regardless of the
// result of f.
func Handle[In, Out any](r *Routes, pattern string, most int64, role string, text Doc, f func(*Call, *In) (Out, error)) {
	r.Operations = append(r.Operations, Operation{Pattern: pattern, Role: role, About: text, In: TypeOf[In](), Out: TypeOf[Out]()})
	wire.Answer(r.Server, pattern, most, func(req *http.Request, in *In) (out Out, err error) {
		q, err := NewCall(req, role, text.Params)
		if err == nil {
			out, err = f(q, in)
			err = cmp.Or(q.Invalid, err)
		}
		return out, r.Refuser.Refusal(req.Context(), err)
	})
}

// Stream registers f, which writes the response to GET requests of a path itself. If f returns an
// error, the error is the response. media is the type of the response, "" is JSON.
func Stream[Out any](r *Routes, path, media string, text Doc, f func(*Call, http.ResponseWriter) error) {
	r.Operations = append(r.Operations, Operation{Pattern: "GET " + path, Role: access.MayRead, About: text, Out: TypeOf[Out](), Media: media})
	r.Server.Mount("GET "+path, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		q, err := NewCall(req, access.MayRead, text.Params)
		if err == nil {
			err = f(q, w)
		}
		if err != nil {
			wire.Fail(w, r.Refuser.Refusal(req.Context(), err))
		}
	}))
}

// Public registers a handler of requests without authentication.
func (r *Routes) Public(pattern, media string, text Doc, h http.Handler) {
	r.Operations = append(r.Operations, Operation{Pattern: pattern, About: text, Media: media, Public: true})
	r.Server.Public(pattern, h)
}
