// Package serve is the built-in data server: a folder, or files that are made
// as they are read, over HTTP and WebDAV.
//
// Its costs are small and known, so that it serves as the reference for measurements of storage
// services: the kernel sends files (sendfile) and synthetic content (from memory) without a copy
// through the process, every byte is counted as it moves, and GET /metrics returns the counts. It
// listens on the loopback interface unless configured otherwise, and no path leaves the folder it
// serves (os.Root).
//
// An uploaded file appears under its name when it is whole, never before. Until then it
// has a hidden temporary name beside it; temporaries that a killed server
// left behind are removed by the next one (see leftovers.go).
//
// GET /.weir/chunks/PATH?size=BYTES returns the adler32 of each chunk of so many bytes of a file,
// for clients with a partly damaged copy.
//
// The name metrics and the folder .weir/chunks in the top folder, and all names that
// begin with ".weir-serve", belong to the server and hide files called so.
package serve

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"weir/internal/unit"
)

// A Config configures the content, the addresses and the clients of a server. The comments of the
// fields describe their zero values.
type Config struct {
	Dir       string // folder to serve; exactly one of Dir and Synthetic is given
	Synthetic []Set  // files to invent, see ParseSynthetic
	Seed      uint64 // seed of generated files; 0 is a valid seed

	Listen string // host:port; "" is 127.0.0.1:0, a port that the kernel chooses
	Public bool   // allow an address beyond loopback without TLS and credentials

	CertFile, KeyFile string           // PEM; with them the server uses TLS only; set both files or neither
	Certificate       *tls.Certificate // instead of the files

	// Accepted credentials: clients need one of the following. Without any, every client is
	// accepted.
	User, Password string                              // basic authentication, with all rights; set both fields or neither
	Token          string                              // bearer token; all rights
	ClientCA       string                              // PEM file of authorities of clients; needs TLS and Clients
	Clients        []string                            // common names, DNS names or whole subjects of their certificates; all rights
	Authenticate   func(*http.Request) (Rights, error) // tokens with rights of their own, see transfer/endpoint

	Extensions []Extension // called in this order; they end with the Server

	ReadOnly bool  // refuse all requests that change files
	MaxFile  int64 // largest size of a file in bytes, unless a token has a limit; 0: unlimited
	Sync     bool  // put an upload, and a new name, on stable storage before the response
	Memory   int64 // synthetic: bytes of uploads that are not package content, kept in memory; 0 is 64 MiB
	MaxFiles int   // synthetic: uploads and folders remembered; 0 is 1,000,000

	Rate      int64         // bytes/s of one connection, each way; 0: unlimited
	TotalRate int64         // bytes/s of all connections together, each way; 0: unlimited
	Delay     time.Duration // pause before each answer

	PageCPU time.Duration // CPU time that each page that is read costs, see pages.go; may be 0
	Page    int64         // bytes of a page; 0: each request reads one page
	Threads int           // threads that serve pages, one at a time each; 0 is 1

	// Unadmitted is the number of connections whose clients have not presented credentials yet, of one address half of them; as many
	// wait. Each has ten seconds. 0 is a quarter of the files that this process may open. Without credentials it means nothing.
	Unadmitted int

	HeaderTimeout time.Duration // from the first byte of a request to the end of its head, and for the TLS handshake; 0 is 10 s
	IdleTimeout   time.Duration // between two requests of a connection; 0 is 5 min
	StallTimeout  time.Duration // within a body without any byte moved; 0 is 60 s
	Grace         time.Duration // for running requests when the server is stopped; 0 is 5 s

	Log *slog.Logger // nil is silence
}

// A Server serves one Config. It is made by New, serves once, and is closed.
type Server struct {
	conf     Config
	tree     tree
	metrics  *metrics
	sums     *sums
	total    totals
	silent   silence
	buffers  sync.Pool     // *[]byte of copyBytes
	stop     chan struct{} // closed when connections are to be torn down
	ending   sync.Once
	inFlight sync.WaitGroup // requests being handled
	clients  *x509.CertPool // authorities of clients' certificates; nil: no certificates are requested
	quotas   quotas
	pages    *pageThreads          // nil: pages cost nothing
	classes  []string              // that extensions announce
	copied   func(io.Writer) error // ends the answer to a COPY within the server; nil: it has no body

	mu     sync.Mutex
	addr   net.Addr
	served bool
}

// New checks c, opens the content and removes the leftovers of a killed server. The caller closes
// the Server.
func New(c Config) (*Server, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	c.defaults()
	s := &Server{conf: c, metrics: newMetrics(), sums: newSums(), stop: make(chan struct{})}
	s.buffers.New = newBuffer
	s.total = totals{up: newPacer(c.TotalRate), down: newPacer(c.TotalRate)}
	var err error
	if s.clients, err = c.authorities(); err != nil {
		return nil, err
	}
	if c.Dir != "" {
		s.tree, err = openDir(c)
	} else {
		s.tree = newSynthetic(c, time.Now())
	}
	if err != nil {
		return nil, err
	}
	if c.PageCPU > 0 {
		s.pages = newPageThreads(c.PageCPU, c.Page, c.Threads)
	}
	for i, e := range c.Extensions {
		if err := e.Attach(s); err != nil {
			s.conf.Extensions = c.Extensions[:i]
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Close releases the resources of the Server. It is called after Serve has returned.
func (s *Server) Close() error {
	var errs []error
	for _, e := range s.conf.Extensions {
		errs = append(errs, e.Close())
	}
	s.pages.close()
	return errors.Join(append(errs, s.tree.close())...)
}

func (c *Config) defaults() {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&c.HeaderTimeout, 10*time.Second)
	if c.Unadmitted == 0 {
		c.Unadmitted = openFiles() / 4
	}
	set(&c.IdleTimeout, 5*time.Minute)
	set(&c.StallTimeout, time.Minute)
	set(&c.Grace, 5*time.Second)
	c.Listen = cmp.Or(c.Listen, "127.0.0.1:0")
	c.Memory = cmp.Or(c.Memory, 64<<20)
	c.MaxFiles = cmp.Or(c.MaxFiles, 1_000_000)
	c.Threads = max(c.Threads, 1)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

// encrypted reports whether the server uses TLS.
func (c *Config) encrypted() bool { return c.CertFile != "" || c.Certificate != nil }

// Check returns an error if a server cannot have the configuration.
func (c *Config) Check() error {
	switch {
	case c.Dir == "" && len(c.Synthetic) == 0:
		return errors.New("nothing to serve: name a folder, or synthetic files such as 1000x1MiB")
	case c.Dir != "" && len(c.Synthetic) > 0:
		return errors.New("a folder and synthetic files: choose one")
	case (c.CertFile == "") != (c.KeyFile == ""):
		return errors.New("TLS needs both a certificate file and a key file")
	case c.CertFile != "" && c.Certificate != nil:
		return errors.New("a certificate and a certificate file: choose one")
	case c.ClientCA != "" && (!c.encrypted() || len(c.Clients) == 0):
		return errors.New("certificates of clients need TLS (a certificate and a key of the server) and the names that are let in")
	case (c.User == "") != (c.Password == ""):
		return errors.New("basic authentication needs both a user and a password")
	case c.Rate < 0 || c.TotalRate < 0 || c.Memory < 0 || c.MaxFiles < 0:
		return errors.New("rates and limits are not negative")
	case c.Page < 0 || c.Threads < 0 || c.PageCPU < 0:
		return errors.New("the CPU time and the size of a page, and the number of threads, are not negative")
	case c.PageCPU > maxPageCPU:
		return fmt.Errorf("a page cannot cost more than %v of CPU time", unit.Duration(maxPageCPU))
	case c.Threads > maxThreads:
		return fmt.Errorf("%d threads for pages: at most %d", c.Threads, maxThreads)
	case c.PageCPU == 0 && (c.Page > 0 || c.Threads > 0):
		return errors.New("the size of a page and the number of threads need the CPU time of a page")
	case min(c.Delay, c.HeaderTimeout, c.IdleTimeout, c.StallTimeout, c.Grace) < 0:
		return errors.New("delays and timeouts are not negative")
	}
	if c.Dir == "" {
		return checkSets(c.Synthetic)
	}
	info, err := os.Stat(c.Dir)
	if err != nil {
		return fmt.Errorf("folder to serve: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", c.Dir)
	}
	return nil
}
