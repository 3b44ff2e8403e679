// Package storagetest is the conformance suite that every driver passes. It tests the promises of package storage
// against a real service.
//
// Every operation of the suite is checked: it ends in time, does not change its Op, reports its
// progress in order, by one goroutine at a time and not after its end, counts its bytes correctly
// and fails with an *OpError. Missing features of a target are declared in Options, never guessed.
package storagetest

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/storage"
)

// A Lack is a feature that a target does not have and that is not tested.
type Lack string

// Features that a target may lack.
const (
	SeveralRanges  Lack = "several ranges in one read"
	Ranges         Lack = "ranges"
	SpecialNames   Lack = "names with anything but letters, digits, dots and dashes"
	QuestionMarks  Lack = "names with a question mark"
	ForeignNames   Lack = "names with letters beyond ASCII"
	KeptSessions   Lack = "sessions that last longer than one operation"
	EarlyProgress  Lack = "progress before the operation's end"
	ReadSums       Lack = "checksums of what was read"
	LocalCopies    Lack = "a file of this machine that takes the payload"
	ServerSums     Lack = "checksums by the service"
	SafeRemove     Lack = "refusing to remove a folder that is not empty"
	SafeMove       Lack = "refusing to move a file onto another"
	SafeCopy       Lack = "refusing to copy over a file"
	EmptyCopies    Lack = "copying empty files"
	FolderMove     Lack = "moving a folder with what is in it"
	Replacing      Lack = "writing a file again, or a clear refusal"
	ClearErrors    Lack = "telling a missing file from other failures"
	ExpectedSize   Lack = "noticing that a file is shorter than expected"
	NetworkFailure Lack = "telling refused connections from other failures"
)

// Options configures the suite for a target.
type Options struct {
	Dir     string        // folder below the target, which exists, to work in; "" is the target itself
	Lacks   []Lack        // features that are not tested
	Sum     string        // checksum algorithm to use; "" is adler32
	Clients int           // number of concurrent clients; 0 is 100
	Largest int64         // bytes of the largest file; 0 is 16 MiB
	Few     bool          // fewer sizes and names, for drivers whose operations take long
	Shared  bool          // clients can share a session (Target.Shared)
	Network bool          // the target's host is reached over TCP: dead and silent hosts are tried as well
	Bound   time.Duration // in which every single operation must end; 0 is 30 s
	// Put makes a file of package content without the driver; needed if the driver reads and does
	// not write.
	Put func(t *testing.T, path string, seed uint64, size int64)
	// Summed has the service compute a file's checksum outside the driver, if the service must have
	// it before the first request; nil is nothing.
	Summed func(t *testing.T, path string)
}

// Run tests d's clients on target completely, in subtests. Third-party copies are tested if target
// has an Origin, with the folder Dir as the target has it.
func Run(t *testing.T, d storage.Driver, target storage.Target, o Options) {
	t.Helper()
	s := newSuite(d, target, o)
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"driver", s.testDriver}, {"unsupported", s.testUnsupported},
		{"read", s.testRead}, {"ranges", s.testRanges}, {"write", s.testWrite}, {"replace", s.testReplace},
		{"folders", s.testFolders}, {"missing", s.testMissing}, {"escape", s.testEscape}, {"login", s.testLogin}, {"checksum", s.testChecksum},
		{"session", s.testSession}, {"cancel", s.testCancel}, {"timeout", s.testTimeout}, {"network", s.testNetwork},
		{"move", s.testMove}, {"locate", s.testLocate}, {"ping", s.testPing}, {"keep", s.testKeep}, {"plain", s.testPlain},
		{"copy", s.testCopy}, {"dest", s.testDest}, {"together", s.testTogether}, {"joint", s.testJoint}, {"leaks", s.testLeaks},
	} {
		t.Run(part.name, part.run)
	}
}

// Copies tests only the third-party copies of d's clients from target's Origin.
func Copies(t *testing.T, d storage.Driver, target storage.Target, o Options) {
	t.Helper()
	newSuite(d, target, o).testCopy(t)
}

func newSuite(d storage.Driver, target storage.Target, o Options) *suite {
	s := &suite{driver: d, target: target, o: o}
	if o.Sum == "" {
		s.o.Sum = "adler32"
	}
	if o.Clients == 0 {
		s.o.Clients = 100
	}
	if o.Largest == 0 {
		s.o.Largest = 16 << 20
	}
	if o.Bound == 0 {
		s.o.Bound = 30 * time.Second
	}
	return s
}

type suite struct {
	driver storage.Driver
	target storage.Target
	o      Options
	all    []*listener // of all operations so far
}

func (s *suite) offers(k storage.Kind) bool { return slices.Contains(s.driver.Kinds, k) }

// need skips a test of features that the target does not have; that is not a gap, since the lack
// was declared.
func (s *suite) need(t *testing.T, kinds ...storage.Kind) {
	t.Helper()
	for _, k := range kinds {
		if !s.offers(k) {
			t.Skipf("driver %s does not offer %s", s.driver.Name, k)
		}
	}
}

func (s *suite) lacks(l Lack) bool { return slices.Contains(s.o.Lacks, l) }

func (s *suite) unless(t *testing.T, l Lack) {
	t.Helper()
	if s.lacks(l) {
		t.Skipf("declared: the target lacks %s", l)
	}
}

// path returns a path for the running test that no other test uses.
func (s *suite) path(t *testing.T, name string) string {
	unique := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(t.Name()))
	return path.Join(s.o.Dir, unique+"-"+name)
}

// service opens the target; it is closed when the test ends, after all that its clients left.
func (s *suite) service(t *testing.T, target storage.Target) storage.Service {
	t.Helper()
	return Open(t, s.driver, target)
}

// of returns a new client of svc, which is closed when the test ends.
func (s *suite) of(t *testing.T, svc storage.Service) storage.Client {
	t.Helper()
	return clientOf(t, svc)
}

func (s *suite) client(t *testing.T) storage.Client {
	t.Helper()
	return s.of(t, s.service(t, s.target))
}

// Open opens a service and closes it with the test, which it fails if either cannot be.
func Open(t testing.TB, d storage.Driver, target storage.Target) storage.Service {
	t.Helper()
	s, err := d.Open(t.Context(), target)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Client returns a client of a target's service, and closes the client and the service with the
// test.
func Client(t testing.TB, d storage.Driver, target storage.Target) storage.Client {
	t.Helper()
	return clientOf(t, Open(t, d, target))
}

func clientOf(t testing.TB, s storage.Service) storage.Client {
	t.Helper()
	c := s.Client()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
