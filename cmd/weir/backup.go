package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/db"
	"weir/internal/durable"
	"weir/transfer/state"
)

// backupFlags name the state of a coordinator and the passphrase of its backups.
type backupFlags struct {
	state, passphrase string
	db                dbFlags
}

func (f *backupFlags) add(c *cobra.Command) {
	flagVars{"state": &f.state, "passphrase-file": &f.passphrase}.add(c)
	f.db.add(c, "db", "WEIR_DB")
}

// backup reads the flags.
func (f *backupFlags) backup(c *cobra.Command, s streams) (b state.Backup, err error) {
	b.Version = version()
	if f.passphrase == "" {
		return b, usageError(c, errors.New("name the file with the passphrase: --passphrase-file FILE"))
	}
	if b.Passphrase, err = fileText(f.passphrase); err != nil {
		return b, usagef("--passphrase-file: %w", err)
	}
	if b.DB, err = f.db.find(s); err != nil {
		return b, err
	}
	b.State, err = stateFolder(f.state)
	return b, err
}

func backupCommand(s streams) *cobra.Command {
	var f backupFlags
	c := command("backup FILE --passphrase-file FILE", cobra.ExactArgs(1), func(c *cobra.Command, args []string) error {
		b, err := f.backup(c, s)
		if err != nil {
			return err
		}
		if err := newFile(args[0]); err != nil {
			return err
		}
		ctx, cancel := s.untilSignal(c.Context(), false)
		defer cancel()
		var about state.Saved
		err = durable.WriteFunc(args[0], 0o600, func(w io.Writer) (err error) {
			about, err = b.Write(ctx, w)
			return err
		})
		if err != nil {
			return fmt.Errorf("no backup was written: %w", err)
		}
		_, err = fmt.Fprintf(s.out, "%s: %d rows of %d tables, and the keys\n", line(args[0]), about.Total(), len(about.Rows))
		return err
	})
	f.add(c)
	return c
}

func restoreCommand(s streams) *cobra.Command {
	var f backupFlags
	c := command("restore FILE --passphrase-file FILE", cobra.ExactArgs(1), func(c *cobra.Command, args []string) error {
		b, err := f.backup(c, s)
		if err != nil {
			return err
		}
		file, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer file.Close()
		ctx, cancel := s.untilSignal(c.Context(), false)
		defer cancel()
		about, err := b.Restore(ctx, file)
		if err != nil {
			return fmt.Errorf("nothing was restored: %w", err)
		}
		if _, err := fmt.Fprintf(s.out, "restored the state of %s: %d rows of %d tables, and the keys\n",
			about.Made.Format(time.RFC3339), about.Total(), len(about.Rows)); err != nil {
			return err
		}
		where := "--state " + line(b.State)
		if b.DB != "" {
			where += " --db " + line(db.Public(b.DB))
		}
		s.printErr("Start the coordinator with %s; the old one must not run again.\n", where)
		return nil
	})
	c.PreRunE = existing("a backup")
	f.add(c)
	return c
}

// newFile returns an error if there is a file at path.
func newFile(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("%s exists already: name a new file, or remove it", line(path)))
	}
	return nil
}
