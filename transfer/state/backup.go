package state

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"weir/internal/db"
	"weir/internal/durable"
	"weir/internal/tarfile"
	"weir/transfer/access"
	"weir/transfer/queue"
)

// A Saved describes a backup. It is the first file in it.
type Saved struct {
	Format  int         `json:"format"`
	Version string      `json:"weir"`
	Made    time.Time   `json:"made"`
	Rows    []db.Copied `json:"rows"`
}

// Total returns the number of rows.
func (s Saved) Total() (n int64) {
	for _, t := range s.Rows {
		n += t.Rows
	}
	return n
}

const (
	backupFormat = 1
	aboutFile    = "backup.json"
	largestKey   = 1 << 20 // bytes of a file of the state folder that is not the database
)

// keyName matches the names of the files that a backup contains besides the database.
var keyName = regexp.MustCompile(`^[a-z]+\.[a-z]+$`)

// A Backup describes the location of a coordinator's state, and the encryption of its backup.
type Backup struct {
	State      string // the state folder
	DB         string // postgres://..., or a file; "": in State
	Passphrase string // of at least 12 bytes
	Version    string // of this program
}

// check returns an error if the passphrase is too short.
func (b *Backup) check() error {
	if len(b.Passphrase) < 12 {
		return errors.New("the passphrase needs at least 12 bytes: openssl rand -base64 24 makes a good one")
	}
	return nil
}

// Write writes a backup: the keys and tokens of the state folder and one state of the database,
// encrypted with the passphrase (age, https://age-encryption.org/v1). The coordinator may run. The
// database is copied into a temporary file in the state folder first. The database and this program
// must have the same version of the tables.
func (b *Backup) Write(ctx context.Context, out io.Writer) (about Saved, err error) {
	if err := b.check(); err != nil {
		return about, err
	}
	dir, err := os.MkdirTemp(b.State, "backup-")
	if err != nil {
		return about, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	about = Saved{Format: backupFormat, Version: b.Version, Made: time.Now().UTC().Truncate(time.Second)}
	copied := filepath.Join(dir, TableFile)
	if about.Rows, err = b.copyDB(ctx, copied); err != nil {
		return about, err
	}
	to, err := age.NewScryptRecipient(b.Passphrase)
	if err != nil {
		return about, err
	}
	sealed, err := age.Encrypt(out, to)
	if err != nil {
		return about, err
	}
	packed := gzip.NewWriter(sealed)
	archive := tar.NewWriter(packed)
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return about, err
	}
	if err := tarfile.AddText(archive, aboutFile, text); err != nil {
		return about, err
	}
	if err := b.addKeys(archive); err != nil {
		return about, err
	}
	if err := tarfile.AddFile(archive, copied, tar.Header{Name: filepath.Base(copied), Mode: 0o600}); err != nil {
		return about, err
	}
	return about, errors.Join(archive.Close(), packed.Close(), sealed.Close())
}

// copyDB copies the database into a new file of SQLite.
func (b *Backup) copyDB(ctx context.Context, path string) (all []db.Copied, err error) {
	if file, isFile := fileOf(address(b.State, b.DB)); isFile {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("database: %w", err)
		}
	}
	src, err := db.Open(ctx, address(b.State, b.DB), db.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	dst, err := db.Open(ctx, "sqlite:"+path, db.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	if _, _, err := migrate(ctx, dst, queue.Options{}); err != nil {
		return nil, err
	}
	return db.Copy(ctx, src, dst, nil)
}

// addKeys adds the keys and tokens of the state folder.
func (b *Backup) addKeys(archive *tar.Writer) error {
	entries, err := os.ReadDir(b.State)
	if err != nil {
		return err
	}
	found := 0
	for _, e := range entries {
		if !e.Type().IsRegular() || !keyName.MatchString(e.Name()) || e.Name() == TableFile || e.Name() == aboutFile {
			continue
		}
		text, err := os.ReadFile(filepath.Join(b.State, e.Name()))
		if err != nil {
			return err
		}
		if len(text) > largestKey {
			return fmt.Errorf("%s in the state folder has %d bytes and is no key: move it away", e.Name(), len(text))
		}
		if err := tarfile.AddText(archive, e.Name(), text); err != nil {
			return err
		}
		if slices.Contains([]string{access.SecretsFile, access.IssuerFile, access.AdminFile}, e.Name()) {
			found++
		}
	}
	if found < 3 {
		return fmt.Errorf("%s has not all keys of a coordinator: name its state folder with --state", b.State)
	}
	return nil
}

// Restore creates the state folder and the database from a backup. The folder must be new or empty,
// and so must a database of DB. Requests get numbers, and attempts epochs, that the lost
// coordinator has not given since the backup. If it fails, the folder is unchanged.
func (b *Backup) Restore(ctx context.Context, in io.Reader) (about Saved, err error) {
	if err := b.check(); err != nil {
		return about, err
	}
	if there, err := os.ReadDir(b.State); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return about, err
	} else if len(there) > 0 {
		return about, fmt.Errorf("%s is not empty: a backup is restored into a new folder (--state)", b.State)
	}
	if err := os.MkdirAll(b.State, 0o700); err != nil {
		return about, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, clearFolder(b.State))
		}
	}()
	secret, err := age.NewScryptIdentity(b.Passphrase)
	if err != nil {
		return about, err
	}
	opened, err := age.Decrypt(in, secret)
	if wrong := new(age.NoIdentityMatchError); errors.As(err, &wrong) {
		return about, errors.New("the passphrase is not that of this backup")
	} else if err != nil {
		return about, fmt.Errorf("this is no backup: %w", err)
	}
	if about, err = b.unpack(opened); err != nil {
		return about, err
	}
	return about, b.restoreDB(ctx)
}

// unpack writes the files of a backup into the state folder. It refuses files with names that Write
// does not use.
func (b *Backup) unpack(in io.Reader) (about Saved, err error) {
	packed, err := gzip.NewReader(in)
	if err != nil {
		return about, fmt.Errorf("the backup is damaged: %w", err)
	}
	archive := tar.NewReader(packed)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return about, fmt.Errorf("the backup is damaged: %w", err)
		}
		switch {
		case !keyName.MatchString(h.Name) || h.Typeflag != tar.TypeReg:
			return about, fmt.Errorf("the backup has a file %.100q, which is none of a coordinator", h.Name)
		case h.Name == aboutFile:
			if err := json.NewDecoder(io.LimitReader(archive, largestKey)).Decode(&about); err != nil {
				return about, fmt.Errorf("the backup is damaged: %s: %w", aboutFile, err)
			}
			continue
		case about.Format != backupFormat:
			return about, fmt.Errorf("the backup has format %d and this program reads %d: use weir %.40q", about.Format, backupFormat, about.Version)
		}
		err = durable.WriteFunc(filepath.Join(b.State, h.Name), 0o600, func(w io.Writer) error {
			_, err := io.Copy(w, archive)
			return err
		})
		if err != nil {
			return about, fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	for _, name := range []string{access.SecretsFile, access.IssuerFile, access.AdminFile, TableFile} {
		if _, err := os.Stat(filepath.Join(b.State, name)); err != nil {
			return about, fmt.Errorf("the backup is incomplete: %w", err)
		}
	}
	return about, nil
}

// restoreDB prepares the database in the state folder for a new start, and moves it to DB.
func (b *Backup) restoreDB(ctx context.Context) error {
	path := filepath.Join(b.State, TableFile)
	d, err := db.Open(ctx, "sqlite:"+path, db.Options{})
	if err != nil {
		return err
	}
	if _, _, err = migrate(ctx, d, queue.Options{}); err == nil {
		err = queue.SkipNumbers(ctx, d)
	}
	if err = errors.Join(err, d.Close()); err != nil || b.DB == "" {
		return err
	}
	if _, err := MoveDB(ctx, b.State, "", b.DB, nil); err != nil {
		return err
	}
	return removeDB(path)
}

// removeDB removes the file of a database, and the additional files of SQLite.
func removeDB(path string) error {
	files, err := filepath.Glob(path + "*")
	for _, f := range files {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}

// clearFolder removes the files of a failed attempt to restore.
func clearFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if keyName.MatchString(e.Name()) || strings.HasPrefix(e.Name(), TableFile) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
