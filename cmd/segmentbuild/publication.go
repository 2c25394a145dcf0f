package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/internal/objects"
	"capper/internal/segments/ingest"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
)

// An approval contains the flags by which an operator permits changes that the guard (the check against the live
// generation) refuses.
type approval struct {
	Force  bool     `help:"Publish even if the safety checks reject the change; needs --reason."`
	Accept []string `sep:"none" placeholder:"NAME:CHANGE" help:"Approve one change that the safety checks reject, such as 'opted-out: -57%' (57 % of the users leave the set). 'tz/Asia/Singapore: vanishes' approves that the set disappears. Needs --reason; may be repeated. Services that suppress the set (deny messages to its users) accept the approved change, too. If a suppressed set disappears, the setting no_longer_suppressed of each service must name the set."`
	Reason string   `help:"Reason for --force or --accept. The manifest (list of the published segments and sets) contains this reason."`
}

func (a *approval) check() error {
	switch {
	case strings.TrimSpace(a.Reason) != "":
		return nil
	case a.Force:
		return errors.New("--force requires --reason \"…\", which is recorded in the manifest")
	case len(a.Accept) > 0:
		return errors.New("--accept requires --reason \"…\", which is recorded in the manifest")
	}
	return nil
}

// The method "accept" adds the changes that the flags --accept permit to the plan.
func (a *approval) accept(plan *ingest.Plan) error {
	for _, text := range a.Accept {
		accepted, err := publish.ParseAcceptance(text, a.Reason)
		if err != nil {
			return fmt.Errorf("--accept %w", err)
		}
		plan.Bounds.Accept = append(plan.Bounds.Accept, *accepted)
	}
	return nil
}

// forcedBy returns the operator's reason for --force. The manifest (list of the published segments and sets) contains
// the operator's reason even if the guard (the check against the live generation) has refused nothing.
func (a *approval) forcedBy() string {
	if !a.Force {
		return ""
	}
	return a.Reason
}

// A publication checks and publishes the result of a build or of an amend (publish of some sets).
type publication struct {
	Approval           approval
	setsAnyway, dryRun bool
	location           objects.Location
	bounds             *publish.Bounds
	report             *buildReport
	waiting            string // hint about new users of sets that only grow, in case the guard refuses the build

	session   publish.Session
	publisher *publish.Publisher
	held      error // error about a hold (stop of all publishing) at the beginning, or nil
}

// The interface content represents the result of a build or of an amend (publish of some sets). A publication checks
// and publishes a content.
type content interface {
	read(ctx context.Context, session *publish.Session, at objects.Location) (*publish.LiveState, error)
	// The method "propose" returns a proposal to publish the content in place of the live generation in the argument
	// "base". Callers may call propose again with another live generation. In a proposal, the base and the candidate
	// represent each user by the same number.
	propose(base *publish.LiveState, report *buildReport) (*publish.Proposal, error)
	// mayRepeat reports whether a publisher may publish the content in place of the generation in the argument "now".
	// Another process published that generation in the meantime.
	mayRepeat(ctx context.Context, at objects.Source, before, now *publish.LiveState) (bool, error)
}

// Before the command reads the inputs, the method "begin" checks whether publishing is on hold. A publication checks
// the hold again at the end.
func (p *publication) begin(ctx context.Context) (err error) {
	if !p.dryRun {
		p.held, err = p.session.Hold(ctx, p.location)
	}
	if err != nil {
		p.report.noteFailure(err)
	}
	p.report.held = p.held != nil
	return err
}

// The method "publish" publishes the result of a build or of an amend (publish of some sets). If another process
// publishes a generation in the meantime, the method "publish" tries to replace that generation, unless changes would
// be lost.
func (p *publication) publish(ctx context.Context, show *terminal.Progress, what content) error {
	p.publisher = &publish.Publisher{Location: p.location, ToolVersion: toolVersion(),
		Uploaded: func(_ string, sizeBytes int64) { show.Add(sizeBytes, 0) }}
	show.Step("comparing with the live generation", 0)
	base, err := what.read(ctx, &p.session, p.location)
	if err != nil {
		return err
	}
	for {
		err := p.publishOver(ctx, show, what, base)
		if !errors.Is(err, objects.ErrLostRace) {
			return err
		}
		now, readErr := what.read(ctx, &p.session, p.location)
		if readErr != nil {
			return err
		}
		if may, readErr := what.mayRepeat(ctx, p.location, base, now); readErr != nil || !may {
			return err
		}
		show.Step("another process published: comparing with the live generation again", 0)
		base = now
	}
}

func (p *publication) publishOver(ctx context.Context, show *terminal.Progress, what content,
	base *publish.LiveState) error {
	p.report.Status, p.report.Warnings, p.report.Sets = "failed", slices.Clone(p.report.idWarnings), nil
	proposal, err := what.propose(base, p.report)
	if err != nil {
		return err
	}
	base = proposal.Base // the bitmaps of this base have the user numbers of the candidate
	found, err := p.guard(ctx, proposal)
	if found == nil {
		return err
	}
	built := proposal.Candidate
	show.Step("publishing", built.SizeBytes())
	switch {
	case p.held != nil:
		return p.publishSets(ctx, built, base, found, p.held)
	case err != nil && p.setsAnyway:
		return p.publishSets(ctx, built, base, found, err)
	case err != nil:
		if base.Generation != nil {
			p.report.noteWaiting(found.Sets, base.Generation.Manifest, p.waiting)
		}
		return err
	case p.dryRun:
		p.report.Status = "dry run"
		return nil
	}
	published, err := p.publisher.Publish(ctx, built, base, p.Approval.forcedBy())
	if on := new(publish.HoldError); errors.As(err, &on) { // the hold began during this build
		return p.publishSets(ctx, built, base, found, err)
	}
	if err != nil {
		p.report.noteFailure(err)
		return err
	}
	p.report.notePublished(published)
	return nil
}

// The method "guard" checks whether the changes of a proposed generation (published version) stay within the limits. If
// the limits forbid a change without an approval, or if reading the location fails, the method guard returns an error.
func (p *publication) guard(ctx context.Context, proposal *publish.Proposal) (*publish.Findings, error) {
	report := p.report
	report.Before = proposal.Base.Name
	found, err := p.bounds.Judge(ctx, p.location, proposal, time.Now())
	if wrong := new(publish.AcceptError); errors.As(err, &wrong) {
		report.Status = "refused"
	}
	if err != nil {
		return nil, err
	}
	report.noteFindings(found)
	report.noteSets(proposal.Candidate)
	report.noteLosses(proposal, found)
	report.Accepted = proposal.Candidate.Accepted
	if len(found.Refusals) == 0 || p.Approval.Force {
		report.Forced = len(found.Refusals) > 0
		return found, nil
	}
	report.Status = "refused"
	return found, refused(found)
}

// publishSets publishes the new users of sets that only grow, and nothing else. A publication calls publishSets if the
// guard (the check against the live generation) or a hold on publishing forbids the publish of the whole build.
// publishSets returns the reason why the rest was not published.
func (p *publication) publishSets(ctx context.Context, built *publish.Candidate, base *publish.LiveState,
	found *publish.Findings, why error) error {
	report := p.report
	report.noteFailure(why)
	report.Accepted = nil
	if base.Generation == nil {
		return why
	}
	only, grew := built.SetsThatGrew(base.Generation, func(set string) bool { return found.RefusedSets[set] })
	report.SetsThatGrew = grew
	report.noteWaiting(found.Sets, base.Generation.Manifest, "")
	if len(grew) == 0 || p.dryRun {
		return why
	}
	only, base, err := built.Numbered(only, base)
	if err != nil {
		return err
	}
	published, err := p.publisher.Publish(ctx, only, base, "")
	if err != nil {
		report.noteFailure(err)
		report.SetsThatGrew = nil
		return err
	}
	report.notePublished(published)
	report.Status = setsPublished
	return &partlyError{why}
}

// partlyError reports a partial publish: the build has published new users of sets that only grow, and nothing else.
type partlyError struct{ error }

func (e *partlyError) Error() string {
	why, ok := strings.CutPrefix(e.error.Error(), "not published")
	if !ok {
		why = ": " + why
	}
	return "published the sets that grew, but not the rest" + why
}

func (e *partlyError) Unwrap() error { return e.error }
