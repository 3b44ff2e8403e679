package tpc

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"
)

// macaroonOf returns a macaroon in the form of libmacaroons, version 1, with an empty signature.
func macaroonOf(caveats ...string) string {
	text := "001clocation lab\n0034identifier x\n"
	for _, c := range caveats {
		text += "00aacid " + c + "\n"
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text + "002fsignature x\n"))
}

// TestMacaroons: the requests, and useless responses.
func TestMacaroons(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   any
		kind   Kind
	}{
		"a good one": {200, map[string]string{"macaroon": macaroonOf("activity:READ_METADATA,UPLOAD,DOWNLOAD,DELETE,MANAGE,LIST",
			"activity:DOWNLOAD,LIST,READ_METADATA", "path:/f")}, ""},
		"in another form": {200, map[string]string{"macaroon": "%%%"}, ""},
		"XRootD, for a token": {200, map[string]string{"macaroon": macaroonOf("activity:READ_METADATA",
			"activity:DOWNLOAD,LIST,READ_METADATA")}, Unsupported},
		"nothing":               {200, map[string]string{}, Unsupported},
		"no JSON":               {200, nil, Unsupported},
		"a server without them": {405, nil, Unsupported},
		"nginx":                 {404, nil, Unsupported},
		"an expired token":      {401, nil, Denied},
		"busy":                  {503, nil, Busy},
	} {
		at := peer(t, func(w http.ResponseWriter, r *http.Request) {
			var asked struct {
				Caveats  []string `json:"caveats"`
				Validity string   `json:"validity"`
			}
			b, err := io.ReadAll(r.Body)
			if err != nil || json.Unmarshal(b, &asked) != nil || len(asked.Caveats) != 1 || asked.Caveats[0] != "activity:"+MayRead ||
				asked.Validity != "PT90S" {
				t.Errorf("%s: asked %q, %v", name, b, err)
			}
			if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/macaroon-request" ||
				r.Header.Get("Authorization") != "Bearer t" {
				t.Errorf("%s: %s %v", name, r.Method, r.Header)
			}
			w.WriteHeader(tt.status)
			if tt.body != nil {
				_ = json.NewEncoder(w).Encode(tt.body)
			}
		})
		text, err := client(t, Options{}).Macaroon(t.Context(), Target{URL: at + "/f", Token: "t"}, MayRead, 90*time.Second)
		if KindOf(err) != tt.kind || (err == nil) != (text != "") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}
