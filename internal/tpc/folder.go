package tpc

import (
	"context"
	"encoding/xml"
	"io"
	"net/http"
	"strings"
)

// asksKind is the body of a PROPFIND for the kind of something.
const asksKind = `<?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop><resourcetype/></prop></propfind>`

// mostListed limits the length that is read of a response to PROPFIND.
const mostListed = 1 << 20

// IsFolder reports whether there is a folder at a URL; false also if the endpoint has no WebDAV and so no folders.
func (c *Client) IsFolder(ctx context.Context, t Target) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, shortAnswer)
	defer cancel()
	res, err := c.Do(ctx, Request{Method: "PROPFIND", Target: t, Header: http.Header{"Depth": {"0"}, "Content-Type": {"application/xml"}},
		Body: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(asksKind)), nil }, Length: int64(len(asksKind))})
	if err != nil {
		return false, err
	}
	defer end(res)
	switch {
	case kindOfStatus(res.StatusCode) == Unsupported:
		return false, nil
	case res.StatusCode != http.StatusMultiStatus:
		return false, Answered("PROPFIND", res)
	}
	var all struct {
		Kinds []struct {
			Folder *struct{} `xml:"collection"`
		} `xml:"response>propstat>prop>resourcetype"`
	}
	if err := xml.NewDecoder(io.LimitReader(res.Body, mostListed)).Decode(&all); err != nil {
		return false, &Error{Kind: Broken, Text: "PROPFIND: the answer cannot be read", Err: err}
	}
	for _, one := range all.Kinds {
		if one.Folder != nil {
			return true, nil
		}
	}
	return false, nil
}
