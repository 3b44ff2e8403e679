package scenario

import (
	"strconv"
	"strings"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
)

// A Server describes weir's own server, if it is the target. Its zero value is a server that uses
// as little CPU time as possible.
type Server struct {
	PageCPU unit.Duration `json:"cpu_per_page,omitempty" doc:"CPU time of each page: of workload.job.page, or of a request."`
	Threads int           `json:"threads,omitempty" default:"1" when:"with cpu_per_page" doc:"Threads that serve pages, one page at a time each."`
	CPU     []int         `json:"cpu,omitempty" doc:"Processors of the server by number, as in [1]. Default: all."`
}

// Bounds of a Server; weir serve has the same bounds.
const (
	maxPageCPU       = unit.Duration(10 * time.Second)
	maxServerThreads = 1024
	maxProcessor     = 1023
)

// server checks the description of the built-in server.
func (c *checker) server() {
	s := &c.Server
	if s.PageCPU == 0 && s.Threads == 0 && len(s.CPU) == 0 {
		return
	}
	if c.Target != BuiltIn {
		c.say("server", "only weir's own server can be described; omit server, or use target: %s", BuiltIn)
		return
	}
	c.refuse(s.PageCPU < 0 || s.PageCPU > maxPageCPU, "server.cpu_per_page", "%v; use up to %v", s.PageCPU, maxPageCPU)
	c.refuse(s.Threads < 0 || s.Threads > maxServerThreads, "server.threads", "%d; use up to %d", s.Threads, maxServerThreads)
	c.refuse(s.Threads > 0 && s.PageCPU == 0, "server.threads", "needs server.cpu_per_page: threads serve pages that cost CPU time")
	for i, n := range s.CPU {
		c.refuse(n < 0 || n > maxProcessor, "server.cpu."+strconv.Itoa(i), "%d; use the number of a processor, from 0 to %d", n, maxProcessor)
	}
}

// Page returns the bytes of a page of the built-in server; 0 means that each request reads one
// page.
func (p *Plan) Page() unit.Size {
	if p.Work.Job == nil {
		return 0
	}
	return p.Work.Job.Page
}

// serverText writes the properties of the built-in server and its highest throughput.
func (p *Plan) serverText(row func(name, format string, args ...any)) {
	s := &p.Server
	var all []string
	if s.PageCPU > 0 {
		most := float64(s.Threads) / time.Duration(s.PageCPU).Seconds()
		text := s.PageCPU.String() + " of CPU time per page, " + say.Plural(s.Threads, "thread") + ": up to " + unit.Significant(most) +
			" pages/s"
		if page := p.Page(); page > 0 {
			text += ", " + unit.Bits(most*float64(page))
		}
		all = append(all, text)
	}
	if len(s.CPU) > 0 {
		var numbers []string
		for _, n := range s.CPU {
			numbers = append(numbers, strconv.Itoa(n))
		}
		all = append(all, "on processor "+strings.Join(numbers, ", "))
	}
	if len(all) > 0 {
		row("server", "%s", strings.Join(all, "; "))
	}
}
