package thirdparty

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"weir/internal/digest"
	"weir/internal/pause"
	"weir/internal/say"
	"weir/internal/token"
	"weir/internal/tpc"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/catalog"
	"weir/transfer/dispatch"
	"weir/transfer/remote"
)

// Timeouts of endpoints for everything but the copy itself.
const (
	askTime       = time.Minute
	digestTime    = 10 * time.Minute // for the checksum of a large file
	uncheckedTime = 5 * time.Second  // for a checksum that the request does not require
	cleanTime     = 20 * time.Second
	noticeTime    = 15 * time.Second // for a source that pushes to detect the end of the copy: XRootD sends a marker every 5 s
	confirmTime   = 10 * time.Minute // for a destination that has all bytes to confirm it: they are not copied again because of that
)

var errTimeout = errors.New("the copy took longer than the timeout of its job")

// A thirdCopy is a third-party copy.
type thirdCopy struct {
	c           *Copier
	l           transfer.Lease
	tokens      access.JobTokens      // of its job
	active      *dispatch.ActiveLease // nil: it is not running
	out         transfer.Outcome
	late        bool   // the source may continue to push for a while, and finish the temporary file
	none        string // why the other end of the copy gives no macaroon to the proxy of its job
	wrote       bool   // it may have a temporary file
	needsStream bool   // its checksum is not known before its bytes have passed
	sum         string // of the bytes that passed through the coordinator, in the format of digest.Short; "": they did not
}

func (c *Copier) newThird(l transfer.Lease) *thirdCopy {
	return &thirdCopy{c: c, l: l, out: transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Begin: c.now()}}
}

// Start starts a third-party copy. run ends when the coordinator stops.
func (c *Copier) Start(run context.Context, h dispatch.Copy) {
	c.copies.Go(func() {
		ctx := h.Context
		defer h.End()
		k := c.newThird(h.Lease)
		k.active = h.ActiveLease
		k.copyLent(ctx)
		k.out.Unwritten = !k.wrote
		defer func() {
			if k.late && pause.For(run, noticeTime) {
				k.clean(run)
			}
		}()
		if errors.Is(context.Cause(ctx), dispatch.ErrEnded) {
			return // its outcome is known
		}
		for wait := time.Second; ; wait = min(2*wait, time.Minute) { // the database may be unavailable
			err := c.applyOutcome(context.WithoutCancel(ctx), k.out)
			if err == nil || ctx.Err() != nil && !errors.Is(context.Cause(ctx), dispatch.ErrCancelled) {
				return
			}
			c.health.Database(err)
			if !pause.For(ctx, wait) {
				return
			}
		}
	})
}

// copyLent does the same as copy with the credentials of the job.
func (k *thirdCopy) copyLent(ctx context.Context) {
	var err error
	if k.l.Job != "" {
		if k.tokens, _, err = k.c.access.TokensOf(ctx, k.l.Item); err == nil {
			err = k.c.access.Lend(ctx, &k.l, k.tokens)
		}
		if err == nil {
			err = k.spent(ctx, "", access.TokenSlack)
		}
	}
	var t *access.TokenError
	switch {
	case err == nil:
		k.copy(ctx)
		return
	case !errors.As(err, &t):
		k.out.Fault, k.out.Reason = transfer.MoverStopped, "the credentials of its job cannot be read now"
		k.c.health.Database(err)
	case t.After > 0: // no attempt was made
		k.out.Fault, k.out.After, k.out.Reason = transfer.Throttled, t.After, say.Bounded(err.Error())
	default:
		k.out.Fault, k.out.Reason = transfer.Permanent, say.Bounded(err.Error())
	}
	k.out.End = k.c.now()
}

// spent returns the reason why no attempt can succeed any more with the tokens of its job, if a
// site has refused them. With "", it checks the tokens for all sites.
func (k *thirdCopy) spent(ctx context.Context, site string, slack time.Duration) error {
	if site == "" || site == k.l.Dest.Site {
		if err := k.c.access.Spent(ctx, k.tokens.Dest, slack); err != nil {
			return fmt.Errorf("%s: %w", k.l.Dest.Site, err)
		}
	}
	if site != "" && site != k.l.Source.Site || k.tokens.Sources[k.l.Source.Site] == (access.JobToken{}) {
		return nil
	}
	var failed error
	for name, one := range k.tokens.Sources { // another source may be possible
		err := k.c.access.Spent(ctx, one, slack)
		if err == nil {
			return nil
		}
		if name == k.l.Source.Site {
			failed = fmt.Errorf("%s: %w", name, err)
		}
	}
	return failed
}

// renewTokens fills in the current tokens of its job. Tokens that cannot be renewed stay: the
// endpoints refuse them.
func (k *thirdCopy) renewTokens() {
	if k.tokens.Managed() {
		_ = k.c.access.Lend(context.Background(), &k.l, k.tokens)
	}
}

// copy makes the copy and sets its outcome.
func (k *thirdCopy) copy(ctx context.Context) {
	if k.l.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, k.l.Timeout, errTimeout)
		defer stop()
	}
	err := k.do(ctx)
	if err != nil {
		k.out.Fault, k.out.After = classOf(err)
		k.out.Reason = say.Bounded(err.Error())
		var at *siteError
		var e *tpc.Error
		if errors.As(err, &at) {
			k.out.At = at.site
		}
		if errors.As(err, &e) {
			k.out.Status = cmp.Or(e.Remote, e.Status)
		}
		if cause := context.Cause(ctx); errors.Is(cause, dispatch.ErrCancelled) {
			k.out.Fault, k.out.Reason = transfer.RequestCancelled, cause.Error()
		} else if errors.Is(cause, errTimeout) {
			k.out.Fault, k.out.Reason, k.out.At = transfer.Transient, fmt.Sprintf("%v, %v", cause, k.l.Timeout), ""
		} else if errors.Is(cause, context.Canceled) {
			k.out.Fault, k.out.Reason, k.out.At = transfer.MoverStopped, "the coordinator was stopped", ""
		}
	}
	if k.l.Job != "" && k.out.Fault == transfer.Denied {
		if tpc.UnknownHost(err) { // no permission is missing
			k.out.Fault = transfer.Transient
		} else if why := k.spent(context.WithoutCancel(ctx), k.out.At, 0); why != nil {
			k.out.Fault, k.out.Reason = transfer.Permanent, k.out.Reason+"; "+say.Bounded(why.Error())
		}
	}
	k.out.End = k.c.now()
}

// source, final and temp return the ends of a copy with fresh credentials: a copy may outlive its
// first credentials.
func (k *thirdCopy) source() tpc.Target {
	k.renewTokens()
	return k.c.endpoints.Target(k.l, k.l.Source, token.Path("read", "/"+k.l.Source.Path))
}

func (k *thirdCopy) final() tpc.Target {
	k.renewTokens()
	return k.c.endpoints.Target(k.l, k.l.Dest, access.WriteScopes(k.l.Dest.Path, k.l.TempPath())...)
}

func (k *thirdCopy) temp() tpc.Target {
	k.renewTokens()
	at := k.l.Dest
	at.Path = k.l.TempPath()
	return k.c.endpoints.Target(k.l, at, access.WriteScopes(k.l.Dest.Path, k.l.TempPath())...)
}

// marked returns the ends of a copy with the label and metadata that its job passes on with the
// bytes.
func (k *thirdCopy) marked() (source, temp tpc.Target) {
	source, temp = k.source(), k.temp()
	source.Header, temp.Header = http.Header{}, http.Header{}
	if k.tokens.SciTag != "" {
		source.Header[tpc.SciTag], temp.Header[tpc.SciTag] = []string{k.tokens.SciTag}, []string{k.tokens.SciTag}
	}
	if k.tokens.ArchiveMetadata != "" {
		temp.Header[tpc.ArchiveMetadata] = []string{k.tokens.ArchiveMetadata}
	}
	return source, temp
}

// A classError is an error of a known class.
type classError struct {
	class transfer.ErrorClass
	text  string
}

func (f *classError) Error() string { return f.text }

func failf(class transfer.ErrorClass, format string, a ...any) error {
	return &classError{class, fmt.Sprintf(format, a...)}
}

// A siteError is an error of one end of a copy.
type siteError struct {
	error
	site string
}

func (s *siteError) Unwrap() error { return s.error }

func at(e transfer.End, err error) error { return &siteError{err, e.Site} }

// do copies the file under a temporary name, verifies and renames it.
func (k *thirdCopy) do(ctx context.Context) error {
	switch k.l.Mode {
	case transfer.Check:
		return k.check(ctx)
	case transfer.Delete:
		return k.remove(ctx)
	}
	want, err := k.l.Adler, error(nil)
	asked := want == "" || k.l.Size < 0
	if asked {
		if want, err = k.checkSource(ctx); err != nil {
			return err
		}
	}
	if !k.l.Strict {
		if exists, err := k.exists(ctx, want); exists || err != nil {
			k.out.Existed = exists
			return err
		}
		if !asked {
			if want, err = k.checkSource(ctx); err != nil {
				return err
			}
		}
		if err := k.c.tpc.Parents(ctx, k.temp()); err != nil {
			return at(k.l.Dest, fmt.Errorf("folders at %s: %w", k.l.Dest.Site, err))
		}
	}
	err = k.transport(ctx)
	if err == nil {
		want, err = k.compare(want)
	}
	if err != nil {
		if k.wrote {
			k.clean(ctx)
		}
		return k.blame(ctx, err, want)
	}
	k.stage(transfer.Verifying)
	if err := k.retry(ctx, func() error { return k.verify(ctx, k.temp(), want) }); err != nil {
		k.clean(ctx)
		return k.blame(ctx, err, want)
	}
	k.stage(transfer.Committing)
	if err := k.retry(ctx, func() error { return k.rename(ctx) }); err != nil {
		k.clean(ctx)
		return err
	}
	return k.retry(ctx, func() error { return k.verify(ctx, k.final(), want) })
}

// blame determines whether the source is corrupt, if it has a checksum. If a source first reported
// another checksum than now, and now reports the checksum of the copy, the source is not corrupt:
// the copy is tried again.
func (k *thirdCopy) blame(ctx context.Context, err error, want string) error {
	var f *classError
	if !errors.As(err, &f) || f.class != transfer.Checksum || k.out.Adler == "" || want == "" {
		return err
	}
	info, statErr := k.c.tpc.Checksum(ctx, k.source(), tpc.Wish{Size: k.l.Size, Want: want})
	if statErr != nil || info.Adler == "" || info.Adler == want {
		return err
	}
	if k.l.Adler == "" && info.Adler == k.out.Adler {
		return failf(transfer.Transient, "%s first gave %s as the checksum of the file, then %s, which its copy has as well", k.l.Source.Site,
			digest.Words(want), digest.Words(info.Adler))
	}
	return k.corrupt(info.Adler, want)
}

// corrupt returns the error for a source with wrong bytes.
func (k *thirdCopy) corrupt(has, want string) error {
	kind, digits := digest.Split(has)
	return failf(transfer.SourceBad, "the file at %s is corrupt: its %s is %s instead of %s", k.l.Source.Site, kind.Name, digits, hexOf(want))
}

// hexOf returns the digits of a checksum.
func hexOf(sum string) string {
	_, digits := digest.Split(sum)
	return digits
}

// retry calls f until it succeeds or fails permanently: credentials may be renewed meanwhile, and
// servers may recover.
func (k *thirdCopy) retry(ctx context.Context, f func() error) error {
	until := k.c.now().Add(confirmTime)
	for wait := time.Second; ; wait = min(2*wait, 30*time.Second) {
		err := f()
		if err == nil {
			return nil
		}
		switch class, after := classOf(err); class {
		case transfer.Denied:
			if k.spent(ctx, k.l.Dest.Site, 0) != nil {
				return err
			}
		case transfer.Unreachable, transfer.Throttled, transfer.Transient:
			wait = max(wait, min(after, time.Minute))
		default:
			return err
		}
		if k.c.now().Add(wait).After(until) || !pause.For(ctx, wait) {
			return err
		}
	}
}

// checksum requests the checksum of the file, which should be want.
func (k *thirdCopy) checksum(ctx context.Context, t tpc.Target, want string) (tpc.Info, error) {
	if k.l.Strict {
		return k.c.tpc.Stat(ctx, t)
	}
	w := tpc.Wish{Size: k.l.Size, Want: want, Patience: digestTime}
	switch {
	case k.l.Unchecked:
		w.Patience = uncheckedTime
	case k.c.streams() && (want == "" || k.l.Job != "") || k.streamsFile(): // its checksum can be computed here
		w.Brief = uncheckedTime
	}
	return k.c.tpc.Checksum(ctx, t, w)
}

// exists reports whether the destination has the file already. Another file there is replaced only
// if its job allows it.
func (k *thirdCopy) exists(ctx context.Context, want string) (bool, error) {
	info, err := k.checksum(ctx, k.final(), want)
	switch {
	case tpc.KindOf(err) == tpc.Missing:
		return false, nil
	case err != nil:
		return false, at(k.l.Dest, fmt.Errorf("%s: %w", k.l.Dest.Site, err))
	case info.Size == k.l.Size && want != "" && info.Adler == want:
		k.out.Size, k.out.Adler, k.out.Verified = info.Size, info.Adler, true
		return true, nil
	case k.l.Replace:
		return false, nil
	case info.Size == k.l.Size && info.Adler == "" && k.l.Unchecked:
		k.out.Size = info.Size
		return true, nil
	}
	k.out.Size, k.out.Adler = max(info.Size, 0), info.Adler
	return false, failf(transfer.Occupied, "%s has another file of this name (%s): it is not replaced", k.l.Dest.Site, describe(info))
}

// check verifies that the file at the destination matches the catalog.
func (k *thirdCopy) check(ctx context.Context) error {
	info, err := k.checksum(ctx, k.source(), k.l.Adler)
	switch {
	case tpc.KindOf(err) == tpc.Missing:
		return failf(transfer.SourceBad, "%s no longer has the file", k.l.Dest.Site)
	case err != nil:
		return at(k.l.Dest, fmt.Errorf("%s: %w", k.l.Dest.Site, err))
	case info.Size != k.l.Size || info.Adler != "" && k.l.Adler != "" && info.Adler != k.l.Adler:
		return failf(transfer.SourceBad, "%s has another file of this name (%s)", k.l.Dest.Site, describe(info))
	}
	k.out.Existed, k.out.Size, k.out.Adler, k.out.Verified = true, info.Size, info.Adler, info.Adler != "" && info.Adler == k.l.Adler
	return nil
}

// remove removes the file from its destination, and verifies that it is gone.
func (k *thirdCopy) remove(ctx context.Context) error {
	from := k.l.Dest.Site
	_, err := k.c.tpc.Stat(ctx, k.final())
	if tpc.KindOf(err) == tpc.Missing {
		k.out.Existed, k.out.Verified = true, true
		return nil
	}
	folder := false
	if err == nil {
		folder, err = k.c.tpc.IsFolder(ctx, k.final())
	}
	switch {
	case err != nil:
		return at(k.l.Dest, fmt.Errorf("%s: %w", from, err))
	case folder:
		return failf(transfer.Permanent, "it is a folder at %s: only files are removed", from)
	}
	k.stage(transfer.Committing)
	if err := k.c.tpc.Remove(ctx, k.final()); err != nil {
		return at(k.l.Dest, fmt.Errorf("removing from %s: %w", from, err))
	}
	k.stage(transfer.Verifying)
	switch _, err := k.c.tpc.Stat(ctx, k.final()); {
	case err == nil:
		return failf(transfer.Transient, "%s reported that it removed the file, but still has it", from)
	case tpc.KindOf(err) != tpc.Missing:
		return at(k.l.Dest, fmt.Errorf("%s: %w", from, err))
	}
	k.out.Verified = true
	return nil
}

func describe(info tpc.Info) string {
	if info.Adler == "" {
		return fmt.Sprintf("%d bytes, checksum not available", info.Size)
	}
	return fmt.Sprintf("%d bytes, %s", info.Size, digest.Words(info.Adler))
}

// checkSource returns the checksum that the file must have. It requests it from the source if the
// catalog does not have it, or if the destination may not have a checksum.
func (k *thirdCopy) checkSource(ctx context.Context) (string, error) {
	var info tpc.Info
	var err error
	bySource := k.l.Job != "" && k.l.Unchecked && k.l.Adler != "" // verify_checksum source
	if k.l.Adler == "" || k.l.Unchecked {
		info, err = k.checksum(ctx, k.source(), k.l.Adler)
	} else {
		info, err = k.c.tpc.Stat(ctx, k.source())
	}
	switch {
	case tpc.KindOf(err) == tpc.Missing:
		return "", failf(transfer.SourceBad, "%s does not have the file", k.l.Source.Site)
	case err != nil:
		return "", at(k.l.Source, fmt.Errorf("%s: %w", k.l.Source.Site, err))
	case k.l.Size < 0 && info.Size < 0:
		return "", failf(transfer.Unverified, "%s does not provide its size", k.l.Source.Site)
	case k.l.Size < 0:
		k.l.Size = info.Size
	}
	switch {
	case info.Size >= 0 && info.Size != k.l.Size:
		return "", failf(transfer.SourceBad, "%s has %d bytes of it instead of %d", k.l.Source.Site, info.Size, k.l.Size)
	case k.l.Adler != "" && info.Adler != "" && info.Adler != k.l.Adler:
		return "", k.corrupt(info.Adler, k.l.Adler)
	case info.Adler == "" && (k.l.Adler == "" && !k.l.Unchecked || bySource):
		if k.needsStream = k.c.streams(); k.needsStream {
			return k.l.Adler, nil
		}
		return "", failf(transfer.Unverified, "its checksum cannot be verified: %s does not provide one", k.l.Source.Site)
	}
	return cmp.Or(k.l.Adler, info.Adler), nil
}

// transport has the bytes copied to the temporary name: by the endpoints or, if they cannot,
// through the coordinator.
func (k *thirdCopy) transport(ctx context.Context) error {
	k.stage(transfer.Moving)
	if k.streamsFile() {
		return k.stream(ctx)
	}
	err := k.drive(ctx)
	k.wrote = !unreached(err)
	noMacaroon := k.none != "" && tpc.KindOf(err) == tpc.Denied // with the proxy of the job the coordinator may be admitted
	if tpc.KindOf(err) != tpc.Unsupported && !noMacaroon || !k.c.streams() || ctx.Err() != nil {
		return err
	}
	if !noMacaroon { // other jobs may have tokens
		k.c.leases.NoteUnsupported(&k.l, say.Bounded(err.Error()))
	}
	return k.stream(ctx)
}

// unreached reports whether the server that makes the copy could not be reached.
func unreached(err error) bool {
	var e *tpc.Error
	return errors.As(err, &e) && e.Kind == tpc.Unreachable && !e.Begun
}

// tell records the number of bytes that have moved.
func (k *thirdCopy) tell(moved int64) {
	k.out.Moved = max(k.out.Moved, moved)
	k.c.leases.Advance(k.active, transfer.Moving, moved)
}

// drive has the destination pull, or the source push if the destination cannot.
func (k *thirdCopy) drive(ctx context.Context) error {
	active, passive := k.l.Dest, k.l.Source
	source, temp := k.marked()
	other, err := k.delegated(ctx, k.l.Source, source, tpc.MayRead)
	if err == nil {
		err = k.c.tpc.Drive(ctx, tpc.Order{Active: temp, Passive: other, Streams: k.l.Streams, Size: k.l.Size}, k.tell)
	}
	if tpc.KindOf(err) == tpc.Unsupported && ctx.Err() == nil {
		active, passive = passive, active
		other, pushErr := k.delegated(ctx, k.l.Dest, temp, tpc.MayWrite)
		if pushErr == nil {
			pushErr = k.pushes(ctx, source)
		}
		if pushErr == nil {
			pushErr = k.c.tpc.Drive(ctx, tpc.Order{Active: source, Passive: other, Push: true, Streams: k.l.Streams, Size: k.l.Size}, k.tell)
			k.late = pushErr != nil && (ctx.Err() != nil || tpc.KindOf(pushErr) == tpc.Stalled)
		}
		if tpc.KindOf(pushErr) == tpc.Unsupported {
			pushErr = fmt.Errorf("%w; nor can it be pushed: %s", err, pushErr.Error())
		}
		err = pushErr
	}
	if err == nil {
		return nil
	}
	about := active
	var e *tpc.Error
	if errors.As(err, &e) && e.Remote != 0 {
		about = passive
	}
	if tpc.KindOf(err) == tpc.Missing && about.Site == k.l.Dest.Site {
		err = failf(transfer.Transient, "%v", err) // the source may have it
	}
	if k.none != "" && tpc.KindOf(err) == tpc.Denied {
		err = fmt.Errorf("%w; %s", err, k.none)
	}
	return at(about, fmt.Errorf("copy from %s to %s: %w", k.l.Source.Site, k.l.Dest.Site, err))
}

// pushes returns an error if the source is a server that copies to itself only, regardless of the
// destination: nginx compares the names of hosts without their ports, and Apache may compare
// nothing.
func (k *thirdCopy) pushes(ctx context.Context, source tpc.Target) error {
	server := k.c.sites.Endpoint(k.l.Source.Site).Server
	if server == "" { // it was not probed yet
		able, err := k.c.tpc.Ask(ctx, source)
		if err != nil {
			return err
		}
		server = able.Server
	}
	if name := strings.ToLower(server); strings.HasPrefix(name, "nginx") || strings.HasPrefix(name, "apache") {
		return &tpc.Error{Kind: tpc.Unsupported, Text: fmt.Sprintf("%.100s copies to itself only", server)}
	}
	return nil
}

// delegated returns one end with the token that the other end may have.
func (k *thirdCopy) delegated(ctx context.Context, e transfer.End, t tpc.Target, activities string) (_ tpc.Target, err error) {
	site, _, delegates := k.c.sites.Delegation(e.Site)
	switch {
	case remote.IsRoot(t.URL): // its credentials are sent to it only
	case t.Cert != nil:
		t.Cert = nil
		t.Token, k.none, err = k.c.endpoints.ProxyMacaroon(ctx, &k.l, e, activities)
	case k.l.Job != "": // t has its token
	case !delegates:
		err = &tpc.Error{Kind: tpc.Unsupported, Text: dispatch.KeepsToken(e.Site)}
	case site.Kind != catalog.AgentSite:
		t.Token, err = k.c.endpoints.Delegate(ctx, &k.l, e, activities)
	}
	return t, err
}

func (k *thirdCopy) stage(s transfer.Stage) { k.c.leases.SetStage(k.active, s) }

// verify compares the size and the checksum of the file at the destination.
func (k *thirdCopy) verify(ctx context.Context, t tpc.Target, want string) error {
	info, err := k.checksum(ctx, t, want)
	switch {
	case tpc.KindOf(err) == tpc.Missing:
		return failf(transfer.Checksum, "%s reported success but does not have the file", k.l.Dest.Site)
	case err != nil:
		return at(k.l.Dest, fmt.Errorf("reading back from %s: %w", k.l.Dest.Site, err))
	}
	reads := k.sum != "" || k.l.Job != "" && k.c.streams()
	if info.Adler == "" && reads && !k.l.Unchecked && info.Size == k.l.Size {
		if info.Adler, err = k.readBack(ctx, t); err != nil {
			return at(k.l.Dest, fmt.Errorf("reading back from %s: %w", k.l.Dest.Site, err))
		}
	}
	k.out.Size, k.out.Adler = info.Size, info.Adler
	k.out.Moved = max(k.out.Moved, info.Size)
	switch {
	case info.Size != k.l.Size:
		return failf(transfer.Checksum, "%d bytes arrived at %s instead of %d", info.Size, k.l.Dest.Site, k.l.Size)
	case info.Adler != "" && want != "":
		if info.Adler != want {
			return failf(transfer.Checksum, "what arrived at %s has %s instead of %s", k.l.Dest.Site, digest.Words(info.Adler), hexOf(want))
		}
		k.out.Verified = true
	case !k.l.Unchecked:
		return failf(transfer.Unverified, "%s does not provide a checksum of it", k.l.Dest.Site)
	}
	return nil
}

// rename gives the file its name. If the response was lost, the result depends on the existence of
// the file, or of the temporary file. The file is verified afterwards.
func (k *thirdCopy) rename(ctx context.Context) error {
	move := k.c.tpc.Move
	if k.l.Replace {
		move = k.c.tpc.Replace
	}
	err := move(ctx, k.temp(), k.final().URL)
	var e *tpc.Error
	switch {
	case err == nil:
		return nil
	case tpc.KindOf(err) == tpc.Exists:
		if _, statErr := k.c.tpc.Stat(ctx, k.temp()); tpc.KindOf(statErr) == tpc.Missing {
			return nil // an earlier request was executed
		}
		return failf(transfer.Occupied, "%s has got another file of this name: it is not replaced", k.l.Dest.Site)
	case errors.As(err, &e) && e.Begun && k.l.Replace: // the name may belong to the file that will be replaced
		if _, statErr := k.c.tpc.Stat(ctx, k.temp()); tpc.KindOf(statErr) == tpc.Missing {
			return nil
		}
	case errors.As(err, &e) && e.Begun:
		if _, statErr := k.c.tpc.Stat(ctx, k.final()); statErr == nil {
			return nil
		}
	}
	return at(k.l.Dest, fmt.Errorf("renaming at %s: %w", k.l.Dest.Site, err))
}

// clean removes the temporary file, which is this attempt's own.
func (k *thirdCopy) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	if err := k.c.tpc.Remove(ctx, k.temp()); err != nil {
		k.c.log.Warn("temporary file not removed", "site", k.l.Dest.Site, "path", k.l.TempPath(), "error", err)
	}
}

// classOf returns the class of an error, and the time to the next attempt if the server set one.
func classOf(err error) (transfer.ErrorClass, time.Duration) {
	var f *classError
	if errors.As(err, &f) {
		return f.class, 0
	}
	var e *tpc.Error
	if !errors.As(err, &e) {
		return transfer.Transient, 0
	}
	switch e.Kind {
	case tpc.Unreachable:
		if errors.Is(e.Err, syscall.ECONNREFUSED) || errors.Is(e.Err, syscall.EHOSTUNREACH) || errors.Is(e.Err, syscall.ENETUNREACH) {
			return transfer.Unreachable, 0
		}
		if errors.As(e.Err, new(*net.DNSError)) && !tpc.UnknownHost(e.Err) { // its name may be resolved again soon
			return transfer.Unreachable, 0
		}
		return transfer.Denied, 0 // a certificate, or a name
	case tpc.Denied:
		return transfer.Denied, 0
	case tpc.Missing:
		return transfer.SourceBad, 0
	case tpc.Exists:
		return transfer.Occupied, 0
	case tpc.Full:
		return transfer.DestFull, 0
	case tpc.Busy:
		return transfer.Throttled, e.After
	case tpc.Unsupported:
		return transfer.ModeUnsupported, 0
	case tpc.Mismatch:
		return transfer.Checksum, 0
	}
	if strings.Contains(e.Text, "No space left") {
		return transfer.DestFull, 0
	}
	return transfer.Transient, 0
}
