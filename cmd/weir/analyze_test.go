package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/internal/require"
)

// The examples of docs/analyze.md work as the page describes: each line below a command appears in
// its output.
func TestAnalyzePage(t *testing.T) {
	page := require.File(t, "../../docs/analyze.md")
	outputs, err := filepath.Abs("../../loadtest/analysis/table/testdata")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	for name, output := range map[string]string{"fio-1.json": "fio-read.json", "fio-8.json": "fio-3.42-group.json",
		"fio-64.json": "fio-libaio-group.json", "wrk.txt": "wrk.txt"} {
		require.NoError(t, os.WriteFile(name, require.File(t, filepath.Join(outputs, output)), 0o600))
	}
	ran, said := 0, ""
	for _, block := range regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if name := regexp.MustCompile(`^# (\S+\.csv)\n`).FindStringSubmatch(block[2]); name != nil {
			require.NoError(t, os.WriteFile(filepath.Base(name[1]), []byte(block[2]), 0o600))
			continue
		}
		for line := range strings.Lines(block[2]) {
			line = strings.TrimSuffix(line, "\n")
			if command, ok := strings.CutPrefix(line, "$ weir "); ok {
				ran++
				var code exitCode
				if code, said = weir(t, quoted(command)...); code != exitFine && !strings.Contains(command, "remark") {
					t.Errorf("weir %s: exit code %d\n%s", command, code, said)
				}
			} else if !strings.Contains(unwrapped(said), unwrapped(line)) {
				t.Errorf("no %q in\n%s", line, said)
			}
		}
	}
	if ran < 9 {
		t.Errorf("only %d commands found", ran)
	}
}

// quoted splits a command into words like a shell that supports only double quotes.
func quoted(command string) (words []string) {
	for i, part := range strings.Split(command, `"`) {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}
