package batch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"weir/internal/say"
)

// Run runs a program of the system, found on PATH, and returns what it says. The
// error of one that fails has its own words.
func Run(ctx context.Context, in io.Reader, argv ...string) (string, error) {
	cmd := Command(ctx, argv...)
	var out, words bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &words
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s is not on this machine: workers are submitted where users of the system do so", argv[0])
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s: %w", argv[0], ctx.Err())
	}
	if err != nil {
		return out.String(), fmt.Errorf("%s: %s", argv[0], Words(words.String()+"\n"+out.String(), err))
	}
	return out.String(), nil
}

// Command is a program that speaks English, does not hear the terminal's Ctrl-C
// and is killed when ctx ends.
func Command(ctx context.Context, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = 5 * time.Second
	detach(cmd)
	return cmd
}

// Words are the last lines that a program has said, in one line that can be shown;
// if it said nothing, how it ended.
func Words(text string, err error) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = say.Plain(strings.TrimSpace(line)); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	words := strings.Join(lines[max(0, len(lines)-3):], "; ")
	if len(words) > 600 {
		words = strings.ToValidUTF8(words[len(words)-600:], "")
	}
	return words
}
