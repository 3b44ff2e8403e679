package analysis

import (
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/analysis/transfers"
	"weir/loadtest/analysis/validity"
)

// These are the types of findings.json and of series that other packages define.
type (
	// Step is steps.Figures.
	Step = steps.Figures
	// Backend is limits.Backend.
	Backend = limits.Backend
	// BackendFigure is steps.BackendFigure.
	BackendFigure = steps.BackendFigure
	// BackendLimit is limits.BackendLimit.
	BackendLimit = limits.BackendLimit
	// BackendPoint is limits.BackendPoint.
	BackendPoint = limits.BackendPoint
	// BackendSeries is limits.BackendSeries.
	BackendSeries = limits.BackendSeries
	// Balance is limits.Balance.
	Balance = limits.Balance
	// Bin is steps.Bin.
	Bin = steps.Bin
	// Bottleneck is limits.Bottleneck.
	Bottleneck = limits.Bottleneck
	// Check is validity.Check.
	Check = validity.Check
	// DiskFigure is hosts.DiskFigure.
	DiskFigure = hosts.DiskFigure
	// Distribution is steps.Distribution.
	Distribution = steps.Distribution
	// Heat is steps.Heat.
	Heat = steps.Heat
	// HostFigure is hosts.HostFigure.
	HostFigure = hosts.HostFigure
	// HostPoint is hosts.HostPoint.
	HostPoint = hosts.HostPoint
	// HostSeries is hosts.HostSeries.
	HostSeries = hosts.HostSeries
	// JobCounts is steps.JobCounts.
	JobCounts = steps.JobCounts
	// JobFigures is steps.JobFigures.
	JobFigures = steps.JobFigures
	// LinkFigure is hosts.LinkFigure.
	LinkFigure = hosts.LinkFigure
	// Note is validity.Note.
	Note = validity.Note
	// Outage is validity.Outage.
	Outage = validity.Outage
	// Part is steps.Part.
	Part = steps.Part
	// Phase is steps.Phase.
	Phase = steps.Phase
	// Point is steps.Point.
	Point = steps.Point
	// PopulationCurve is steps.PopulationCurve.
	PopulationCurve = steps.PopulationCurve
	// Program is hosts.Program.
	Program = hosts.Program
	// Quantiles is steps.Quantiles.
	Quantiles = steps.Quantiles
	// ResourceUsage is steps.ResourceUsage.
	ResourceUsage = steps.ResourceUsage
	// ServerFigure is hosts.ServerFigure.
	ServerFigure = hosts.ServerFigure
	// ServerPoint is steps.ServerPoint.
	ServerPoint = steps.ServerPoint
	// ServerSeries is steps.ServerSeries.
	ServerSeries = steps.ServerSeries
	// Share is steps.Share.
	Share = steps.Share
	// SiteFigure is steps.SiteFigure.
	SiteFigure = steps.SiteFigure
	// SteadyPart is steps.SteadyPart.
	SteadyPart = steps.SteadyPart
	// StepBalance is steps.StepBalance.
	StepBalance = steps.StepBalance
	// Subinterval is steps.Subinterval.
	Subinterval = steps.Subinterval
	// TransferCase is transfers.TransferCase.
	TransferCase = transfers.TransferCase
	// TransferEnd is transfers.TransferEnd.
	TransferEnd = transfers.TransferEnd
	// TransferFigures is transfers.TransferFigures.
	TransferFigures = transfers.TransferFigures
	// TransferFile is transfers.TransferFile.
	TransferFile = transfers.TransferFile
	// Validity is validity.Validity.
	Validity = validity.Validity
	// WayFigure is hosts.WayFigure.
	WayFigure = hosts.WayFigure
	// Window is steps.Window.
	Window = steps.Window
	// WorkerFigure is validity.WorkerFigure.
	WorkerFigure = validity.WorkerFigure
)

// Resources of a host.
const (
	ResourceCPU         = hosts.ResourceCPU
	ResourceCore        = hosts.ResourceCore
	ResourceIOWait      = hosts.ResourceIOWait
	ResourceDisk        = hosts.ResourceDisk
	ResourceSent        = hosts.ResourceSent
	ResourceNetwork     = hosts.ResourceNetwork
	ResourceThreads     = hosts.ResourceThreads
	ResourceConnections = hosts.ResourceConnections
	ResourceGenerator   = hosts.ResourceGenerator
	ResourceFiles       = hosts.ResourceFiles
	ResourcePorts       = hosts.ResourcePorts
)

// Values of Balance.Source: the source of the figures from which the shares of backends are
// computed.
const (
	ByClients   = limits.ByClients
	ByLog       = limits.ByLog
	ByInterface = limits.ByInterface
	ByItself    = limits.ByItself
	ByBalancer  = limits.ByBalancer
	BySessions  = limits.BySessions
)

// Values of Bottleneck.Resource that ResourceUsage.Resource does not have.
const (
	LimitLatency = limits.LimitLatency
	LimitInside  = limits.LimitInside
	LimitUnknown = limits.LimitUnknown
	LimitNone    = limits.LimitNone
)

// Values of Bottleneck.Reason.
const (
	ReasonForeign = limits.ReasonForeign
)

// Values of BackendLimit.Resource that ResourceUsage.Resource does not have.
const (
	LimitSessions = limits.LimitSessions
	LimitYield    = limits.LimitYield
)

// Values of Findings.Measure.
const (
	Throughput = steps.Throughput
	Rate       = steps.Rate
)

// States of a check.
const (
	OK      = validity.OK
	Warn    = validity.Warn
	Fail    = validity.Fail
	Skipped = validity.Skipped
)

// States of a result.
const (
	Valid     = validity.Valid
	Suspect   = validity.Suspect
	Invalid   = validity.Invalid
	Unchecked = validity.Unchecked
)

// Values of Outage.Kind.
const (
	OutageFailed    = validity.OutageFailed
	OutageStalled   = validity.OutageStalled
	OutageGenerator = validity.OutageGenerator
)
