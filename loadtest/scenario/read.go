package scenario

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"weir/internal/document"
)

// maxPlan bounds a plan's file, in bytes.
const maxPlan = 16 << 20

// ReadPlan reads the plan in the file at path, as Plan.WriteJSON or a run directory contains it.
// Plans of other versions and unknown keys are errors.
func ReadPlan(path string) (*Plan, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPlan+1))
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	p, err := parsePlan(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// parsePlan reads a plan from JSON, strictly.
func parsePlan(data []byte) (*Plan, error) {
	if len(data) > maxPlan {
		return nil, fmt.Errorf("more than %d bytes: this is no plan", maxPlan)
	}
	var head struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("this is no plan: %w", err)
	}
	if head.Version == nil {
		return nil, errors.New("this is no plan: it has no version; a scenario is made into a plan with weir plan")
	}
	if err := CheckVersion("the plan", *head.Version, PlanVersion); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	p := &Plan{}
	if err := d.Decode(p); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return p, p.check()
}

// CheckVersion returns an error if the version of a format differs from the version that this
// program reads.
func CheckVersion(what string, version, own int) error {
	switch {
	case version > own:
		return fmt.Errorf("%s has version %d, this program reads version %d: use a newer weir", what, version, own)
	case version < own:
		return fmt.Errorf("%s has version %d, this program reads version %d: it was written before the first release", what, version, own)
	}
	return nil
}

// check returns an error if the plan cannot result from a Scenario. Steps without clients are
// valid: a share may contain them.
func (p *Plan) check() error {
	s := p.scenario()
	if p.Model != ClosedModel && p.Model != OpenModel {
		return fmt.Errorf("plan: model %s: use closed or open", document.Quote(string(p.Model)))
	}
	if p.Find != nil {
		if err := p.Find.Check(); err != nil {
			return fmt.Errorf("plan: find: %w", err)
		}
	}
	if len(p.Steps) == 0 && p.Find == nil || len(p.Steps) > maxSteps {
		return fmt.Errorf("plan: %d steps: a plan has 1 to %d", len(p.Steps), maxSteps)
	}
	for i, step := range p.Steps {
		switch {
		case step.Number != i+1:
			return fmt.Errorf("plan: step %d has the number %d: they are numbered from 1", i+1, step.Number)
		case step.Clients < 0 || step.Clients > maxClients:
			return fmt.Errorf("plan: step %d: %d clients: use up to %d", i+1, step.Clients, maxClients)
		case step.Duration <= 0 || min(step.Ramp, step.Warmup, step.Cooldown) < 0 ||
			time.Duration(max(step.Duration, step.Ramp, step.Warmup, step.Cooldown)) > longest:
			return fmt.Errorf("plan: step %d: duration %v, ramp %v, warmup %v, cooldown %v: use up to 366d, and more than 0 for duration", i+1,
				step.Duration, step.Ramp, step.Warmup, step.Cooldown)
		case step.Jobs < 0 || step.Jobs > 0 && p.Model == OpenModel:
			return fmt.Errorf("plan: step %d: jobs %d: use 0 or more, and 0 in the open model", i+1, step.Jobs)
		case p.Model == OpenModel && step.Clients > 0 && !(step.Rate > 0):
			return fmt.Errorf("plan: step %d: an open step needs a rate", i+1)
		}
	}
	for i := range p.Steps {
		if all := p.Dealt(p.Steps[i].Clients, i); len(p.Populations) > 0 && total(all) != p.Steps[i].Clients {
			return fmt.Errorf("plan: step %d: %d clients, but its populations have %v", i+1, p.Steps[i].Clients, all)
		}
	}
	if p.First < 0 {
		return fmt.Errorf("plan: first_client %d: client numbers start at 0", p.First)
	}
	return s.check(nil).Err()
}

// scenario returns the parts of the plan other than its steps as a scenario, for the checks that
// scenarios pass.
func (p *Plan) scenario() *Scenario {
	clients := Counts{1}
	if len(p.Populations) > 0 {
		clients = nil
		for i := range p.Steps {
			clients = append(clients, p.Steps[i].Clients)
		}
	}
	server := p.Server
	if p.BuiltIn { // it runs, and has a URL
		server = Server{}
	}
	return &Scenario{
		Name: p.Name, Target: p.Target, Others: p.Others, Server: server, Balancer: p.Balancer, Client: Command{p.Command},
		Auth: p.Auth, Origin: p.Origin,
		Files: p.Files, Work: p.Work, Populations: p.Populations, Links: p.Links, On: p.On,
		Load: Load{Clients: clients, MaxClients: 1, Duration: 1, GracefulStop: p.GracefulStop, ErrorPause: p.ErrorPause,
			RetryAfter: cmp.Or(p.RetryAfter, obeyRetryAfter)},
		Stop: p.Stop, Hosts: p.Hosts, Thresholds: p.Thresholds, Boundaries: p.Boundaries, Events: p.Events, Seed: p.Seed, Repeat: 1,
	}
}

// WriteJSON writes the plan as ReadPlan reads it, without secrets: see Public.
func (p *Plan) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(p.Public())
}
