package token

import (
	"net/http"
	"testing"
)

func TestFromHeader(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer abc": "abc", "bearer abc": "abc", "BEARER  abc ": "abc", "abc": "", "Basic abc": "", "": "", "Bearerabc": "", "Bearer": "",
	} {
		r := &http.Request{Header: http.Header{"Authorization": {header}}}
		if raw, ok := FromHeader(r); raw != want || ok != (want != "" || header == "Bearer") {
			t.Errorf("%q: %q, %v", header, raw, ok)
		}
	}
}
