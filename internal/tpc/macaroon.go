package tpc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The activities of a macaroon, as dCache and XRootD call them.
const (
	MayRead  = "DOWNLOAD,LIST,READ_METADATA"
	MayWrite = "DOWNLOAD,LIST,READ_METADATA,UPLOAD,DELETE,MANAGE"
)

// Macaroon requests a macaroon from an endpoint: a bearer token that allows only these activities,
// only at and below t's URL and only for the given time, even if t's token allows more. See
// dCache's and XRootD's documentation (POST of application/macaroon-request). If the endpoint makes
// no macaroon, or a macaroon that allows less (XRootD considers the rights of certificates, but not
// of tokens), the error has the kind Unsupported.
func (c *Client) Macaroon(ctx context.Context, t Target, activities string, life time.Duration) (string, error) {
	ask, err := json.Marshal(map[string]any{
		"caveats":  []string{"activity:" + activities},
		"validity": fmt.Sprintf("PT%dS", int64(math.Ceil(life.Seconds()))),
	})
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, shortAnswer)
	defer cancel()
	res, err := c.Do(ctx, Request{
		Method: http.MethodPost, Target: t, Header: http.Header{"Content-Type": {"application/macaroon-request"}}, Length: int64(len(ask)),
		Body: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(ask))), nil },
	})
	if err != nil {
		return "", err
	}
	defer end(res)
	var answer struct {
		Macaroon string `json:"macaroon"`
	}
	if res.StatusCode/100 == 2 && json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&answer) == nil && answer.Macaroon != "" {
		if lacks := lacking(answer.Macaroon, activities); lacks != "" {
			return "", &Error{Kind: Unsupported, Text: fmt.Sprintf("POST: %s makes macaroons that do not allow %s", res.Request.URL.Host, lacks)}
		}
		return answer.Macaroon, nil
	}
	e := Answered("POST", res)
	if e.Kind == Failed || e.Kind == Missing || res.StatusCode/100 == 2 {
		e.Kind = Unsupported
	}
	return "", e
}

// lacking returns the first of some activities that a macaroon does not allow. Its caveats can be
// read by everybody: each that names activities allows these at most.
func lacking(text, activities string) string {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil { // in another form than that of libmacaroons: it is seen when it is used
		return ""
	}
	const caveat = "cid activity:"
	for rest, found := string(raw), true; found; {
		var list string
		if _, rest, found = strings.Cut(rest, caveat); !found {
			break
		}
		list, _, _ = strings.Cut(rest, "\n")
		allowed := strings.Split(list, ",")
		for one := range strings.SplitSeq(activities, ",") {
			if !slices.Contains(allowed, one) {
				return one
			}
		}
	}
	return ""
}
