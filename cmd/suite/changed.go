package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// submission is the period before the newest commit whose changes "auto" selects.
const submission = 3 * time.Hour

// changedPackages returns the packages of all in whose folders, testdata included, files changed
// since a commit. A file that was moved and is 95% the same has not changed. "auto" takes the last
// commit that is 3 hours older than the newest commit, or the first commit if no commit is so old.
func changedPackages(ctx context.Context, since string, all []string) ([]string, error) {
	if since == "auto" {
		newest, err := git(ctx, "log", "-1", "--format=%ct")
		if err != nil {
			return nil, err
		}
		at, err := strconv.ParseInt(newest, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("date of the newest commit: %w", err)
		}
		before := strconv.FormatInt(at-int64(submission/time.Second), 10)
		if since, err = git(ctx, "rev-list", "-1", "--before="+before, "HEAD"); err == nil && since == "" {
			since, err = git(ctx, "rev-list", "--max-parents=0", "HEAD")
		}
		if err != nil {
			return nil, err
		}
	}
	lines, err := git(ctx, "diff", "--name-status", "--find-renames=95%", "-l0", since, "HEAD", "--")
	if err != nil {
		return nil, fmt.Errorf("changes since %s: %w", since, err)
	}
	changed := map[string]bool{}
	for line := range strings.Lines(lines) {
		status, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(status, "R") {
			continue
		}
		dir := filepath.Dir(name)
		for !slices.Contains(all, "./"+dir) && dir != "." {
			dir = filepath.Dir(dir) // testdata belongs to the package above
		}
		changed["./"+strings.TrimPrefix(dir, ".")] = true
	}
	var found []string
	for _, p := range all {
		if changed[p] && p != "./" {
			found = append(found, p)
		}
	}
	return found, nil
}

func git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
