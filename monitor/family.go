package monitor

// A family sums up what a group of processes used since it is watched. Its
// sum keeps what processes used that ended, and counts nothing twice although
// the kernel adds what a child used to the parent that waits for it.
type family struct {
	live    map[*entry]*member
	retired usage // of members that ended and whose parent is no member
	highest usage // the largest sum so far: what was told already
}

// A member is one process of a family. CPU time stands apart for itself and
// for the children that it waited for; its bytes include theirs, because the
// kernel keeps them so.
type member struct {
	base, baseKids usage // what it had used when it joined
	self, kids     usage // as last read
	claims         usage // what members that were its children used until they were last seen
	debit          usage // what will come to it from children but is not of this span or family
}

func newFamily() *family { return &family{live: map[*entry]*member{}} }

// used is what m itself used and its children that are gone. A child that was
// a member and that nobody waited for is in claims only; a child that lived
// and died between two looks is in kids only.
func (m *member) used() usage {
	fromKids := m.kids.minus(m.baseKids).minus(m.debit).most(m.claims)
	own := m.self.minus(m.base)
	return usage{
		user:    own.user + max(0, fromKids.user),
		system:  own.system + max(0, fromKids.system),
		read:    max(0, own.read-m.debit.read) + m.claims.read,
		written: max(0, own.written-m.debit.written) + m.claims.written,
	}
}

// history is what the kernel has in m's counters that is not of this span.
func (m *member) history() usage { return m.base.plus(m.baseKids).plus(m.debit) }

// leave removes an ended process. The parent gets its inheritance if the
// parent is a member, too; waits says whether the parent waits for children,
// so that the kernel adds their bytes to the parent's.
func (f *family) leave(e *entry, parent *member, waits bool) {
	m := f.live[e]
	delete(f.live, e)
	if parent == nil {
		f.retired = f.retired.plus(m.used())
		return
	}
	used, history := m.used(), m.history()
	if waits {
		parent.debit.read += history.read
		parent.debit.written += history.written
		// The rest is in the parent's own now.
		used.read, used.written = m.claims.read, m.claims.written
	}
	parent.debit.user += history.user
	parent.debit.system += history.system
	parent.claims = parent.claims.plus(used)
}

// disown tells a member that what the process m of another family used will
// be added to it by the kernel although it is not its own.
func (m *member) disown(other *member) {
	m.debit = m.debit.plus(other.self).plus(other.kids)
}

// advance returns how far the sum rose above what was told before. A sum that
// fell, by a process that changed between two reads of one look, is made up
// for later and never told as a negative number.
func (f *family) advance() usage {
	sum := f.retired
	for _, m := range f.live {
		sum = sum.plus(m.used())
	}
	risen := sum.minus(f.highest).most(usage{})
	f.highest = f.highest.most(sum)
	return risen
}
