package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"weir/internal/say"
	"weir/loadtest/analysis"
)

// A junitFile is the root of JUnit's XML, as CI systems read it.
type junitFile struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

// A junitSuite has a test case for each threshold of a run.
type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Start    string      `xml:"timestamp,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	Failure *junitResult `xml:"failure"`
	Error   *junitResult `xml:"error"`
	Out     string       `xml:"system-out,omitempty"`
}

type junitResult struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
}

// JUnit writes the thresholds of runs as JUnit XML: a suite for each run. A threshold that is not
// met is a failure. If rejected returns true for a run, such as an invalid one, its other thresholds
// are errors: their values cannot be relied on.
func JUnit(w io.Writer, runs []*analysis.Findings, rejected func(*analysis.Findings) bool) error {
	var file junitFile
	for _, f := range runs {
		name := f.Name
		if len(runs) > 1 {
			name += " " + f.Run
		}
		s := junitSuite{Name: say.Plain(name), Tests: len(f.Thresholds), Start: f.Start.UTC().Format(time.RFC3339)}
		refused := rejected(f)
		for i := range f.Thresholds {
			j := &f.Thresholds[i]
			c := junitCase{Class: say.Plain(f.Name), Name: say.Plain(j.Threshold)}
			switch {
			case !j.Met:
				s.Failures++
				c.Failure = &junitResult{Message: say.Plain(j.Detail), Type: "threshold"}
			case refused:
				s.Errors++
				c.Error = &junitResult{Message: fmt.Sprintf("the result is %s: %s", f.Validity.Status, say.Plain(j.Detail)), Type: "validity"}
			default:
				c.Out = say.Plain(j.Detail)
			}
			s.Cases = append(s.Cases, c)
		}
		file.Suites = append(file.Suites, s)
	}
	b, err := xml.MarshalIndent(&file, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(b)+"\n")
	return err
}
