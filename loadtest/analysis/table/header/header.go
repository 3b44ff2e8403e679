// Package header reads the names of columns of tables of measurements: quantity, statistic, unit
// and scope, from a closed vocabulary (vocabulary.txt). A name with a word that is not in the
// vocabulary is not understood.
package header

import (
	"strconv"
	"strings"
)

// A Quantity is the measured quantity of a column, "" if the name is not understood.
type Quantity string

// Quantities, and the base units of their values.
const (
	Clients      Quantity = "clients"       // number at the same time
	Throughput   Quantity = "throughput"    // bytes per second
	Rate         Quantity = "rate"          // operations per second
	Latency      Quantity = "latency"       // seconds
	Errors       Quantity = "errors"        // number of failed operations
	ErrorRatio   Quantity = "error-ratio"   // 0 to 1
	SuccessRatio Quantity = "success-ratio" // 0 to 1
	Done         Quantity = "done"          // number of operations that ended well
	Time         Quantity = "time"          // seconds, from any start
	Step         Quantity = "step"          // name or number
	Operations   Quantity = "operations"    // number of operations, with any result
	Size         Quantity = "size"          // bytes
	ErrorRate    Quantity = "error-rate"    // failed operations per second
	Arrivals     Quantity = "arrivals"      // new clients per second
	Span         Quantity = "span"          // seconds: a latency, the length of a run, or the time since its start
	Ambiguous    Quantity = "ambiguous"     // words that have several meanings
)

// Statistics. Percentiles are p with a number, such as p95 or p99.9.
const (
	Mean   = "mean"
	Median = "median"
	Min    = "min"
	Max    = "max"
	Stddev = "stddev"
	Error  = "error" // an error bar
	Sum    = "sum"   // cumulative
)

// Scopes of a value that is not a total.
const (
	PerClient = "client" // also per job, thread or server
	PerItem   = "item"   // per operation
)

// A Reading is the meaning of a name.
type Reading struct {
	Quantity  Quantity
	Statistic string  // "": not stated
	Unit      string  // as written; "": not stated
	Factor    float64 // from Unit to the base unit; 1 without a unit, 0 if the unit may mean bits or bytes
	Scope     string  // "": a total, or of one operation as a latency
	Part      bool    // of some operations only, such as reads
	Of        string  // the unknown thing whose rate is given, as in "widgets/s"
	Unknown   string  // the first word that is not understood
}

// Parse reads the name of a column.
func Parse(name string) Reading {
	p := parser{terms: terms(name), name: name}
	p.collect()
	return p.reading()
}

// Unit returns the unit in a name that need not be understood as a whole, with the factor to the
// base unit of q: a unit of throughput, time, rate or ratio. ok is false without such a unit.
func Unit(name string, q Quantity) (unit string, factor float64, ok bool) {
	p := parser{terms: terms(name), name: name}
	p.collect()
	return p.unitOf(q)
}

func (p *parser) unitOf(q Quantity) (unit string, factor float64, ok bool) {
	r := p.measured()
	switch q {
	case Latency, Time:
		return p.second.text, p.second.value, p.second.value > 0 && p.period.value == 0
	case Throughput:
		return r.Unit, r.Factor, r.Quantity == Throughput && r.Unit != ""
	case Rate:
		return r.Unit, r.Factor, p.period.value > 0 && p.dataText == ""
	case ErrorRatio:
		return p.ratio.text, p.ratio.value, p.ratio.value > 0
	}
	return "", 0, false
}

// A scale is a unit as written and its factor.
type scale struct {
	text  string
	value float64
}

// A parser collects the terms of a name by their roles.
type parser struct {
	name  string
	terms []term

	roles     map[role]int // how often
	statistic string
	scope     string
	data      data // unit of data
	dataText  string
	second    scale // unit of time
	period    scale // of a quotient by time
	ratio     scale
	multiple  float64 // k in k ops/s
	unknown   []string
	short     bool // a unit such as iops or Mbps
}

func (p *parser) has(all ...role) bool {
	for _, r := range all {
		if p.roles[r] > 0 {
			return true
		}
	}
	return false
}

func (p *parser) collect() {
	p.roles, p.multiple = map[role]int{}, 1
	for i := 0; i < len(p.terms); i++ {
		t := p.terms[i]
		switch {
		case t.role == rolePer && i+1 < len(p.terms):
			i++
			p.divide(p.terms[i])
		case t.role == roleNumber && t.text == "1" && i+1 < len(p.terms) && p.terms[i+1].role == rolePer: // 1/s
		case t.role == roleOver && i+1 < len(p.terms) && p.terms[i+1].role == roleNumber:
			i++ // over 10 s: the time of the measurement
			if i+1 < len(p.terms) && p.terms[i+1].role == roleTime && !wordy(p.terms[i].text) {
				i++
			}
		default:
			p.add(t)
		}
	}
}

// divide takes the divisor of a quotient.
func (p *parser) divide(t term) {
	switch t.role {
	case roleTime:
		p.period = scale{t.text, t.value}
	case roleClients, roleJob, rolePlace, roleEach:
		p.scope = PerClient
	case roleItem, roleKind, roleStep:
		p.scope = PerItem
	default:
		p.unknown = append(p.unknown, t.text)
	}
}

func (p *parser) add(t term) {
	switch t.role {
	case roleUnknown, rolePlace, roleNumber, roleOver:
		p.unknown = append(p.unknown, t.text)
	case rolePercentile, roleStatistic:
		if p.statistic == "" || p.statistic == Mean {
			p.statistic = t.word
		}
	case roleEach:
		p.scope = PerClient
	case roleData, roleSpeed:
		p.data, p.dataText = t.data, t.text
		if t.role == roleSpeed {
			p.short, p.period = true, scale{t.text, 1}
		}
	case roleTime:
		switch {
		case p.second.value > 0 && strings.EqualFold(t.text, "min"): // us [min]
			p.add(term{role: roleStatistic, word: Min})
			return
		case p.second.value > 0:
			p.unknown = append(p.unknown, t.text)
		}
		p.second = scale{t.text, t.value}
	case roleRatio:
		p.ratio = scale{t.text, t.value}
	case rolePersecond:
		p.short, p.period, p.multiple = true, scale{t.text, 1}, t.value
	case roleMultiple:
		p.multiple = t.value
	}
	p.roles[t.role]++
}

// reading returns the meaning of the collected terms.
func (p *parser) reading() Reading {
	r := p.measured()
	if len(p.unknown) > 0 {
		if len(p.unknown) == 1 && p.plainRate() {
			return Reading{Quantity: Rate, Statistic: p.statistic, Unit: "/" + p.period.text, Factor: p.multiple / p.period.value,
				Of: p.unknown[0]}
		}
		return Reading{Unknown: p.unknown[0]}
	}
	if r.Quantity == "" && r.Unknown == "" {
		r.Unknown = strings.TrimSpace(p.name)
	}
	return r
}

// plainRate reports whether the name is a rate of one unknown thing, as in "throughput (records/s)".
func (p *parser) plainRate() bool {
	if p.period.value == 0 || !wordy(p.unknown[0]) {
		return false
	}
	for i, t := range p.terms {
		switch t.role {
		case roleUnknown:
			if i+1 == len(p.terms) || p.terms[i+1].role != rolePer {
				return false
			}
		case rolePer, roleTime, roleThroughput, roleRate, roleStatistic, roleTotal, roleFiller:
		default:
			return false
		}
	}
	return p.statistic == "" || p.statistic == Mean
}

func wordy(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err != nil
}

// measured returns the quantity of the known terms.
func (p *parser) measured() Reading {
	r := Reading{Statistic: p.statistic, Scope: p.scope, Factor: 1}
	r.Part = p.has(roleKind)
	switch {
	case p.has(roleAmbiguous):
		r.Quantity = Ambiguous
		return r
	case p.period.value > 0:
		return p.perTime(r)
	case p.dataText != "":
		return p.amount(r)
	case p.ratio.value > 0 || p.has(roleErrorRatio, roleSuccessRatio):
		return p.share(r)
	case p.has(roleErrors, roleErr):
		return p.failed(r)
	case p.has(roleLatency), p.has(roleMoment) && p.has(roleResponse):
		return p.timed(r)
	case p.has(roleSuccess, roleDone):
		return p.done(r)
	case p.has(roleThroughput, roleRate):
		return p.yield(r)
	case p.has(roleMoment, roleStamp, roleSpan):
		return p.moment(r)
	case p.second.value > 0:
		return p.bareTime(r)
	}
	return p.counted(r)
}

// perTime reads quotients by time: throughput, rates of operations, errors or arrivals.
func (p *parser) perTime(r Reading) Reading {
	r.Unit, r.Factor = p.unit(), p.multiple/p.period.value
	switch {
	case p.has(roleLatency, roleMoment, roleStamp, roleSpan, roleStep, roleRatio, roleTime) || p.roles[roleThroughput]+p.roles[roleRate] > 1:
		return Reading{Unknown: r.Unit}
	case p.dataText != "":
		if p.has(roleErrors, roleErr, roleClients) && !p.has(roleEach) {
			return Reading{Unknown: r.Unit}
		}
		r.Quantity, r.Factor = Throughput, p.multiple*p.data.bytes/p.period.value
		if p.data.bitsOrBytes {
			r.Factor = 0
		}
	case p.has(roleErrors, roleErr, roleErrorRatio):
		r.Quantity = ErrorRate
	case p.has(roleAmount):
		r.Quantity = Ambiguous // of transfers, or of their data
	case p.has(roleMultiple) && !p.has(roleItem, roleJob, roleKind):
		return Reading{Unknown: p.name} // k/s
	case p.has(roleItem, roleJob, roleKind, roleRate, roleThroughput, roleDone, roleSuccess) || p.short:
		r.Quantity = Rate
		r.Part = p.has(roleKind)
	case p.has(roleClients):
		r.Quantity = Arrivals
	}
	return r
}

// unit returns the unit of a quotient as written.
func (p *parser) unit() string {
	switch {
	case p.short:
		return p.period.text
	case p.dataText != "":
		return p.dataText + "/" + p.period.text
	}
	return "/" + p.period.text
}

// amount reads a unit of data without a time: an amount, never a throughput.
func (p *parser) amount(r Reading) Reading {
	if p.has(roleLatency, roleClients, roleErrors, roleErr, roleTime, roleRatio, roleStep) {
		return Reading{Unknown: p.dataText}
	}
	r.Quantity, r.Unit, r.Factor = Size, p.dataText, p.data.bytes
	return r
}

// share reads ratios of failed or successful operations.
func (p *parser) share(r Reading) Reading {
	if r.Unit = p.ratio.text; p.ratio.value > 0 {
		r.Factor = p.ratio.value
	}
	switch {
	case p.has(roleTime, roleLatency, roleMoment, roleStamp, roleSpan, roleThroughput, roleStep, roleClients):
		return Reading{Unknown: p.ratio.text}
	case p.has(roleErrors, roleErr, roleErrorRatio) && !p.has(roleSuccess, roleSuccessRatio):
		r.Quantity = ErrorRatio
	case p.has(roleSuccess, roleSuccessRatio) && !p.has(roleErrors, roleErr, roleErrorRatio):
		r.Quantity = SuccessRatio
	default:
		r.Unknown = p.ratio.text
	}
	return r
}

// failed reads numbers of errors, and error bars: an error of a measured value does not count
// errors.
func (p *parser) failed(r Reading) Reading {
	other := p.has(roleLatency, roleThroughput, roleRate, roleMoment, roleStamp, roleSpan, roleClients, roleTime)
	switch {
	case p.has(roleRate) && !p.has(roleLatency, roleThroughput, roleTime, roleClients):
		r.Quantity = ErrorRatio
	case p.has(roleErr) && other:
		r.Statistic, r.Quantity = Error, p.besides()
		r.Unit, r.Factor = p.second.text, max(p.second.value, 1)
	case other:
		r.Unknown = p.name
	case p.scope == PerItem:
		r.Quantity, r.Scope = ErrorRatio, ""
	case (p.has(roleErrors) && !p.single()) || p.has(roleCount, roleItem, roleTotal):
		r.Quantity = Errors
	default:
		r.Quantity = Ambiguous // "error" alone is a number or an error bar
	}
	return r
}

// besides returns the quantity that an error bar belongs to.
func (p *parser) besides() Quantity {
	switch {
	case p.has(roleThroughput):
		return Throughput
	case p.has(roleRate):
		return Rate
	case p.has(roleClients):
		return Clients
	}
	return Latency
}

func (p *parser) timed(r Reading) Reading {
	if p.has(roleRate, roleThroughput, roleStep, roleSuccess) || p.roles[roleClients] > 0 && p.scope == "" && !p.has(roleConcurrent) {
		return Reading{Unknown: p.name}
	}
	if r.Quantity = Latency; p.has(roleTotal) && p.statistic == "" {
		r.Quantity = Span // the sum of all
	}
	r.Unit, r.Factor = p.second.text, p.second.value
	if r.Unit == "" {
		r.Factor = 1
	}
	return r
}

// single reports whether the name is one word that is a number only if another word says so: thread
// may be a number of threads, or the name of one.
func (p *parser) single() bool { return len(p.terms) == 1 && p.terms[0].value == 1 }

func (p *parser) done(r Reading) Reading {
	switch {
	case p.has(roleThroughput, roleMoment, roleStamp, roleSpan, roleStep, roleTime):
		return Reading{Unknown: p.name}
	case p.has(roleRate):
		r.Quantity = SuccessRatio
		if p.has(roleDone) {
			r.Quantity = Rate
		}
	case p.single():
		r.Quantity = Ambiguous // a number, or yes and no
	default:
		r.Quantity = Done
	}
	return r
}

// yield reads throughput and rates without a unit.
func (p *parser) yield(r Reading) Reading {
	switch {
	case p.second.value > 0 || p.has(roleStep, roleMoment, roleStamp, roleSpan) || p.roles[roleThroughput] > 0 && p.has(roleClients):
		return Reading{Unknown: p.name}
	case p.has(roleThroughput):
		r.Quantity = Throughput
	default:
		r.Quantity = Rate
	}
	return r
}

// moment reads times and spans of time.
func (p *parser) moment(r Reading) Reading {
	r.Unit, r.Factor = p.second.text, max(p.second.value, 0)
	if r.Unit == "" {
		r.Factor = 1
	}
	switch {
	case p.scope != "" || p.has(roleClients, roleStep):
		r.Quantity = Span
	case p.second.value > 0 && p.second.value < 1 && !p.has(roleStamp):
		r.Quantity = Span // milliseconds are no times of day
	case p.statistic == "" && !p.has(roleItem, roleJob, roleKind, roleTotal, roleSpan):
		r.Quantity = Time
	default:
		r.Quantity = Span
	}
	return r
}

// bareTime reads a name that has only a unit of time.
func (p *parser) bareTime(r Reading) Reading {
	r.Unit, r.Factor = p.second.text, p.second.value
	switch {
	case p.statistic != "" && (p.statistic != Mean || p.has(roleItem, roleJob)) && !p.has(roleClients, roleStep, roleCount):
		r.Quantity = Latency // p95 (ms), job mean (s)
	case !p.has(roleClients, roleStep, roleCount, roleItem, roleJob):
		r.Quantity = Ambiguous // mean (s) may be of operations or of runs
	default:
		return Reading{Unknown: p.name}
	}
	return r
}

// counted reads plain numbers: clients, steps, operations.
func (p *parser) counted(r Reading) Reading {
	r.Part = false
	switch {
	case p.statistic == Error && p.has(roleClients):
		r.Quantity = Clients
	case p.single():
		r.Quantity = Ambiguous
	case p.has(roleStep):
		if !p.has(roleClients, roleItem, roleJob, roleKind) && p.statistic == "" && p.scope == "" {
			r.Quantity = Step
		}
	case p.has(roleConcurrent) && p.has(roleItem, roleJob, roleClients, roleKind), p.has(roleClients), p.has(roleJob):
		r.Quantity = Clients
	case p.has(roleItem, roleKind):
		r.Quantity = Operations
	case p.statistic != "":
		r.Quantity = Ambiguous // "95%" or "mean" alone
	}
	return r
}
