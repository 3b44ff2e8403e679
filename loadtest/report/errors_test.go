package report

import (
	"strings"
	"testing"
	"time"

	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/storage"
)

// Every class of failure has a meaning and something to look at.
func TestEveryClassHasAMeaning(t *testing.T) {
	for class := storage.None + 1; class < storage.Canceled; class++ {
		if means, look := meaning(class); !strings.HasSuffix(means, ".") || !strings.HasSuffix(look, ".") {
			t.Errorf("%s: %q, %q", class, means, look)
		}
	}
}

func TestErrorsAreToldWithExamples(t *testing.T) {
	f, series := analyzed(t, cluster())
	series.Events = append(series.Events,
		measure.Event{Time: series.Start.Add(9 * time.Second), Kind: measure.EventError, Step: 2, Class: storage.Reset,
			On: "ds2.example.org:1094", What: "write", Text: "<b>connection</b> reset\x1b[2J"},
		measure.Event{Kind: measure.EventError, Step: 99, Class: storage.Busy, What: "read", Text: strings.Repeat("x", 5000)})
	page := page1(t, f, series)
	_, chapter, _ := strings.Cut(page, `<div id="failures">`)
	chapter, _, _ = strings.Cut(chapter, `class="chapter"`)
	for _, want := range []string{"Failed while load was held: 72 of 20.6 k operations", ">busy</td>", ">54</td>", ">75%</td>",
		"turned the client away.",
		"<th scope=\"col\">32</th>", ">0.266%</td>", ">32 clients</td>", ">12:00:09.000</td>", ">ds2.example.org:1094</td>", ">write</td>",
		"&lt;b&gt;connection&lt;/b&gt; reset?[2J", ">step 99</td>", ">(the target itself)</td>", strings.Repeat("x", mostErrorText) + " ..."} {
		if !strings.Contains(chapter, want) {
			t.Errorf("the chapter has no %q", want)
		}
	}
	if !strings.Contains(page, "0.349% failed") {
		t.Error("the page has no share of failed operations")
	}
	if strings.Contains(chapter, strings.Repeat("x", mostErrorText+1)) {
		t.Error("an endless text is shown whole")
	}
	f, series = analyzed(t, resultstest.Typical())
	if page := page1(t, f, series); !strings.Contains(page, "Failed while load was held: 0 of ") ||
		strings.Contains(page, `id="classes"`) {
		t.Error("a run without errors does not say so, or has a table of them")
	}
	if c := errorChapter(&analysis.Findings{}, nil); c.Lead != "" {
		t.Errorf("a run without steps says %q", c.Lead)
	}
}

// A report contains the settings of its run, and the command that repeats it.
func TestRunIsTold(t *testing.T) {
	f, series := analyzed(t, small())
	series.About.Command = []string{"weir", "run", "--set", "files.list=it's mine", ""}
	series.About.Environment = []byte(`{"hostname":"<i>box</i>","kernel":"6.1","cpu_model":"Fast","cores":8,"cores_used":4,"memory_bytes":16000000000,"cores_allowed":"many","open_files_soft":1024,"open_files_hard":4096}`)
	series.Programs = []analysis.Program{{Server: "ds1:1094", Kind: "data server", Name: "xrootd", Version: "v5.7"}}
	_, chapter, _ := strings.Cut(page1(t, f, series), `<div id="run">`)
	for _, want := range []string{"weir run --set &#39;files.list=it&#39;\\&#39;&#39;s mine&#39; &#39;&#39;", "&lt;i&gt;box&lt;/i&gt;",
		"Fast, 8 cores, 4 of them used", "16.0 GB",
		"at most 1024 (hard limit 4096)", ">v5.7</td>", "name: typical", "clients: 256"} {
		if !strings.Contains(chapter, want) {
			t.Errorf("the chapter has no %q", want)
		}
	}
	series.About.Environment = []byte(`"nothing`)
	if page := page1(t, f, series); !strings.Contains(page, "(go") {
		t.Error("without an environment the version is not told")
	}
}
