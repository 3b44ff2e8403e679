package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// killTime is the time limit for reading the output of a program after it was killed.
const killTime = 2 * time.Second

// placeholders returns the texts that are replaced in the arguments of commands, each followed by its value.
func placeholders(m *Message) []string {
	request := ""
	if m.Request != nil {
		request = strconv.FormatInt(m.Request.ID, 10)
	}
	return []string{"{id}", m.ID, "{type}", m.Type, "{request}", request, "{text}", m.Text}
}

// placeholder matches a text that looks like a placeholder.
var placeholder = regexp.MustCompile(`\{[A-Za-z_][A-Za-z0-9_]*\}`)

// checkCommand returns an error if the program of a command is missing, or has a placeholder, or if an argument has an unknown placeholder.
func checkCommand(command []string) error {
	if command[0] == "" {
		return errors.New("name a program")
	}
	if p := placeholder.FindString(command[0]); p != "" {
		return fmt.Errorf("%q: %s is replaced in arguments only", command[0], p)
	}
	var known []string
	for i, text := range placeholders(&Message{}) {
		if i%2 == 0 {
			known = append(known, text)
		}
	}
	for _, arg := range command[1:] {
		for _, p := range placeholder.FindAllString(arg, -1) {
			if !slices.Contains(known, p) {
				return fmt.Errorf("%q: unknown placeholder %s: use one of %s", arg, p, strings.Join(known, ", "))
			}
		}
	}
	return nil
}

// command runs the target's program, without a shell, with the message on its standard input.
func (s *Sender) command(ctx context.Context, m *Message, body []byte) error {
	values := strings.NewReplacer(placeholders(m)...)
	args := make([]string, len(s.Command))
	for i, arg := range s.Command {
		if args[i] = arg; i > 0 {
			args[i] = strings.ReplaceAll(values.Replace(arg), "\x00", "")
		}
	}
	return run(ctx, args, append(body, '\n'))
}

// run runs a program. The program and its child processes are killed when ctx ends.
func run(ctx context.Context, args []string, in []byte) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	out := &tail{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), out, out
	cmd.Env = environment()
	cmd.WaitDelay = killTime
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the end of its context kills all its child processes
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success():
		return nil
	case ctx.Err() != nil:
		err = fmt.Errorf("it did not end in time: %w", ctx.Err())
	}
	if text := brief(out.text); text != "" {
		return fmt.Errorf("%s: %w: %s", args[0], err, text)
	}
	return fmt.Errorf("%s: %w", args[0], err)
}

// environment returns the environment of programs, without variables of the coordinator that may be
// secret.
func environment() []string {
	keep := []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"}
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !slices.Contains(keep, name)
	})
}

// A tail keeps the last bytes that are written to it.
type tail struct{ text []byte }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-keptOutput):]
	return len(p), nil
}

// mail passes a mail to sendmail, which reads the recipients from it.
func (s *Sender) mail(ctx context.Context, m *Message) error {
	var b bytes.Buffer
	if s.From != "" {
		fmt.Fprintf(&b, "From: %s\n", s.From)
	}
	fmt.Fprintf(&b, "To: %s\n", strings.Join(s.Mail, ", "))
	fmt.Fprintf(&b, "Subject: %s\n", mime.QEncoding.Encode("utf-8", "weir: "+m.Text))
	fmt.Fprintf(&b, "Date: %s\n", time.Now().Format(time.RFC1123Z))
	fmt.Fprintf(&b, "Message-ID: <%s@weir.invalid>\n", m.ID)
	b.WriteString("Auto-Submitted: auto-generated\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n" +
		"Content-Transfer-Encoding: quoted-printable\n\n")
	var body bytes.Buffer
	to := quotedprintable.NewWriter(&body)
	_, _ = to.Write([]byte(m.words()))
	_ = to.Close() // into memory
	b.Write(bytes.ReplaceAll(body.Bytes(), []byte("\r\n"), []byte("\n")))
	return run(ctx, s.Sendmail, b.Bytes())
}

// words returns the message as text for people.
func (m *Message) words() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", oneLine(m.Text))
	if r := m.Request; r != nil {
		fmt.Fprintf(&b, "\nrequest      %d, by %s\ndataset      %s\ndestination  %s\n", r.ID, oneLine(r.By), oneLine(r.Dataset), oneLine(r.To))
		if r.Reason != "" {
			fmt.Fprintf(&b, "reason       %s\n", oneLine(r.Reason))
		}
	}
	if len(m.Files) > 0 {
		b.WriteString("\nNot at the destination:\n")
	}
	for _, f := range m.Files {
		fmt.Fprintf(&b, "  %s: %s\n", oneLine(f.Name), oneLine(f.Reason))
	}
	if m.MoreFiles > 0 {
		fmt.Fprintf(&b, "  and %d more\n", m.MoreFiles)
	}
	fmt.Fprintf(&b, "\nCoordinator: %s\nNotification: %s\n", m.Coordinator, m.ID)
	return b.String()
}

// oneLine replaces control characters.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
