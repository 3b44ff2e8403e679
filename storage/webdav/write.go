package webdav

import "errors"

func (x *call) writeFile() error         { return errors.ErrUnsupported }
func (x *call) sendUpload(l *link) error { return errors.ErrUnsupported }
func (x *call) expects() bool            { return false }
func (x *call) stat() error              { return errors.ErrUnsupported }
func (x *call) list() error              { return errors.ErrUnsupported }
func (x *call) mkdir() error             { return errors.ErrUnsupported }
func (x *call) remove() error            { return errors.ErrUnsupported }
func (x *call) checksum() error          { return errors.ErrUnsupported }
func (x *call) login() error             { return errors.ErrUnsupported }
