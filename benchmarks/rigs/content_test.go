package rigs

import (
	"fmt"
)

// contentRigs returns the rigs about servers that send something other than the files.
func contentRigs() []rig {
	return []rig{
		{
			name: "cut-short", short: true,
			situation: "Each response announces 64 KiB and ends after 60.",
			truth:     "No file is complete: no payload counts, and the run is invalid.",
			play:      func(s *stage) { lies(s, spec{ShortBy: 4096}, "short", "reset", "other") },
		}, {
			name:      "file-shorter",
			situation: "The file list states 64 KiB; the server sends 60 with a matching length.",
			truth:     "No file is complete.",
			play:      func(s *stage) { lies(s, spec{CutBy: 4096}, "short", "size") },
		}, {
			name:      "file-longer",
			situation: "The file list states 64 KiB; the server sends 68.",
			truth:     "Reads fail, or the bytes counted are those sent.",
			play:      fileLonger,
		}, {
			name: "wrong-bytes", short: true,
			situation: "One bit of each file is wrong; the server states the correct checksum. All reads are verified.",
			truth:     "Every file is corrupt.",
			play:      func(s *stage) { lies(s, spec{WrongBytes: true}, "checksum") },
		}, {
			name: "lost-writes", short: true,
			situation: "A server acknowledges all writes and loses every fourth file; the checksums of the others are right. " +
				"All writes are verified.",
			truth: "A quarter of the files is lost: the run is invalid, and tells how many of those checked.",
			play:  lostWrites,
		}, {
			name:      "gzip",
			situation: "The server compresses responses unasked.",
			truth:     "A fortieth of the bytes moves: either this is reported, or the run is not valid.",
			play:      compressed,
		}, {
			name:      "chunked",
			situation: "The server sends chunked responses without Content-Length.",
			truth:     "A healthy service: the bytes are those of the files.",
			play:      chunked,
		}, {
			name:      "parts-of-unknown-size",
			situation: "Reads of eight 4 KiB parts of files whose size only HEAD states.",
			truth:     "Each operation moves 32 KiB from anywhere in the file.",
			play:      func(s *stage) { parts(s, spec{}) },
		}, {
			name:      "parts-without-sizes",
			situation: "The same without sizes in HEAD.",
			truth:     "The command refuses, or reads all eight parts.",
			play:      func(s *stage) { parts(s, spec{NoSizes: true}) },
		},
	}
}

// lies plays a server that sends no file correctly, and expects errors of certain classes.
func lies(s *stage, c spec, classes ...string) {
	w := s.faulty(c)
	s.ask(wrk(), w.file(), 4, 2)
	r := s.read(w, "2, 4", "2s", ", verify: 100%")
	s.invalid(r)
	s.noCapacity(r)
	var n int64
	for _, class := range classes {
		n += r.errors(class)
	}
	s.expect(r.findings == nil || n > 0, "errors of class %v expected", classes)
}

func lostWrites(s *stage) {
	w := s.faulty(spec{EveryLosing: 4, Delay: ms(2)})
	r := s.run(fmt.Sprintf("target: %s\nworkload: {kind: write, size: 64KiB, think: 10ms, verify: 100%%}\n"+
		"load: {clients: [2, 4], duration: 2s, %s}\n", w.url, brief))
	s.totals(r)
	s.invalid(r)
	lost, whole := float64(r.errors("checksum")), 0.0
	for i := range r.steps() {
		whole += float64(r.steps()[i].Verified)
	}
	s.near("share of files that are lost", lost/max(1, lost+whole), 0.25, 0.2)
}

func fileLonger(s *stage) {
	w := s.faulty(spec{LongBy: 4096})
	s.ask(wrk(), w.file(), 4, 2)
	r := s.read(w, "2, 4", "2s", ", verify: 100%")
	if r.status() == "valid" {
		s.near("bytes of each read", float64(r.sum.moved)/max(1, float64(r.sum.done)), float64(w.size+4096), 0.01)
	}
}

func compressed(s *stage) {
	w := s.faulty(spec{Gzip: true, Delay: ms(2)})
	s.ask(curl(), w.file(), 1, 3)
	r := s.read(w, "2, 4", "2s", ", verify: 100%")
	st := s.stats(w)
	if r.status() == "valid" {
		s.near("bytes of each read", float64(r.sum.moved)/max(1, float64(r.sum.done)), float64(st.Bytes)/max(1, float64(st.Gets)), 0.05)
	}
}

func chunked(s *stage) {
	w := s.faulty(spec{Chunked: true, Delay: ms(4)})
	s.ask(wrk(), w.file(), 4, 2)
	r := s.read(w, "1, 2", "3s", ", think: 5ms")
	s.near("bytes of each read", float64(r.sum.moved)/max(1, float64(r.sum.done)), float64(w.size), 0.02)
	s.valid(r)
}

func parts(s *stage, c spec) {
	c.Delay = ms(2)
	w := s.faulty(c)
	files := s.list(w, false)
	r := s.run(fmt.Sprintf("target: %s\n%sworkload: {kind: read, part: {size: 4KiB, count: 8}}\nload: {clients: [2, 4], duration: 2s, %s}\n",
		w.url, files, brief))
	if r.findings == nil {
		s.expect(r.exit == 1 || r.exit == 2, "exit code 1 or 2 expected, is %d", r.exit)
		s.expect(c.NoSizes, "the sizes can be asked for: the run must not be refused")
		return
	}
	s.totals(r)
	if r.sum.done > 0 {
		s.near("bytes of each read", float64(r.sum.moved)/float64(r.sum.done), 8*4096, 0.05)
	} else {
		s.invalid(r)
	}
}
