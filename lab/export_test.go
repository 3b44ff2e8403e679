package lab

import "context"

// Tests lie in package lab_test, since labtest imports lab. These are the unexported names that
// they use.
var (
	Alive       = alive
	AskListener = askListener
	AskXRootD   = askXRootD
	DataServers = dataServers
	Dial        = dial
	Greet       = greet
	LinesOf     = linesOf
	Locate      = locate
	OverMemory  = overMemory
	PackageOf   = packageOf
	XRDRequest  = xrdRequest
)

const (
	CGroups    = cgroups
	MaxValue   = maxValue
	PauseImage = pauseImage
	XRDLogin   = xrdLogin
)

func (s *System) Ask(ctx context.Context) error { return s.parts[0].ask(ctx) }
func (s *System) DiskNames() map[string]string  { return s.disks.numbers }
func (s *System) Groups() string                { return s.groups }
func (s *System) GroupsOf(part int) []string    { return s.parts[part].groups }
func (s *System) Ports() []*port                { return s.ports }
func (s *System) ServerNames() []string         { return s.names() }
func (o Options) CheckSet() error               { return o.checkSet() }

func StarterOf(kind string) starter {
	k, _ := KindOf(kind)
	return k.config(Config{}, Options{})
}
