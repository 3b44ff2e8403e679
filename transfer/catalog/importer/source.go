package importer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"slices"
	"strings"

	"weir/storage"
	"weir/transfer/catalog"
)

// A Source describes the files of a dataset at a site, with one of Local, Table and List.
type Source struct {
	Local     string // folder on this machine: the root of the site
	Table     string // file with a table of names, sizes and checksums
	List      string // URL of a storage service: the root of the site
	Path      string // folder of the files below the root
	TokenFile string // for the service of List; "": no token
	Sums      bool   // ask the service of List for checksums
}

// Entries opens the source and yields its files. The caller must call release.
func (s Source) Entries(ctx context.Context, drivers []storage.Driver, o Options) (all iter.Seq2[catalog.Entry, error], release func(),
	err error) {
	switch {
	case s.Local != "":
		root, err := os.OpenRoot(s.Local)
		if err != nil {
			return nil, nil, err
		}
		return Folder(ctx, root, s.Path, o), func() { _ = root.Close() }, nil // only read
	case s.Table != "":
		table, err := os.Open(s.Table)
		if err != nil {
			return nil, nil, err
		}
		return csvOf(s.Table, table), func() { _ = table.Close() }, nil // only read
	}
	service, err := open(ctx, drivers, s.List, s.TokenFile)
	if err != nil {
		return nil, nil, fmt.Errorf("list %s: %w", s.List, err)
	}
	r := remote{Service: service, Folder: s.Path, Sums: s.Sums, Fresh: !strings.HasPrefix(s.List, "root")}
	return listingOf(ctx, r, o), func() { _ = service.Close() }, nil // only read
}

// open opens the storage service at an address with the token in a file; "" selects no token.
func open(ctx context.Context, drivers []storage.Driver, address, tokenFile string) (storage.Service, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(drivers, func(d storage.Driver) bool { return slices.Contains(d.Schemes, u.Scheme) })
	if i < 0 || u.Host == "" && u.Path == "" {
		return nil, errors.New("name a storage service, such as davs://se.example.org/data or root://se.example.org//data")
	}
	auth := storage.Auth{}
	if tokenFile != "" {
		auth = storage.Auth{Method: "token", TokenFile: tokenFile}
	}
	cred, err := auth.Read()
	if err != nil {
		return nil, err
	}
	return drivers[i].Open(ctx, storage.Target{URL: u, Cred: cred})
}
