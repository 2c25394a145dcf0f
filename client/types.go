package client

import "capper/client/api"

// What answers hold, as it comes over the wire: see package api.
type (
	// Denial is a user who must not be sent to.
	Denial = api.Denial
	// Summary counts the users of a filter call.
	Summary = api.Summary
	// SegmentSummary counts the users of one segment.
	SegmentSummary = api.SegmentSummary
	// AudienceTaken is whom a call with an audience was about.
	AudienceTaken = api.AudienceTaken
	// AudienceCount is how many users an audience has.
	AudienceCount = api.AudienceCount
	// Sample is a share of users, always the same one.
	Sample = api.Sample
	// Part is one of several parts that together are an audience, and share no user.
	Part = api.Part
	// Segments is the segments and sets of a generation.
	Segments = api.Segments
	// SegmentInfo is a segment or a set.
	SegmentInfo = api.SegmentInfo
	// UserLookup is what a user is in.
	UserLookup = api.UserLookup
	// Members is a page of the ids of a segment or set.
	Members = api.Members
	// SendsCheck is which users have a recorded send.
	SendsCheck = api.SendsCheck
	// MissingSends is users of one place whose log lacks a send.
	MissingSends = api.MissingSends
	// ImportRequest is sends that were made elsewhere.
	ImportRequest = api.ImportRequest
	// ImportedSend is one of them.
	ImportedSend = api.ImportedSend
	// ImportResult is what became of them.
	ImportResult = api.ImportAnswer
	// ImportSummary counts them.
	ImportSummary = api.ImportSummary
	// ReleaseSummary counts the users of a release call.
	ReleaseSummary = api.ReleaseSummary
	// Messages is what became of messages.
	Messages = api.Messages
	// Message counts what became of a message on one channel.
	Message = api.Message
	// MessageSegment counts answers about the users of one segment.
	MessageSegment = api.MessageSegment
	// MessageChannels is what became of a message on each channel.
	MessageChannels = api.MessageChannels
	// ReleasedMessage is what became of the sends of a message that was given back.
	ReleasedMessage = api.ReleasedMessage
	// Explanation is why a user is allowed or denied.
	Explanation = api.Explanation
	// Standing is how a user stands with a limit.
	Standing = api.Standing
	// Suppression denies the users of a set.
	Suppression = api.Suppression
	// Holdout denies a share of all users.
	Holdout = api.Holdout
	// Quiet is quiet hours.
	Quiet = api.Quiet
	// QuietStanding is how a user stands with quiet hours.
	QuietStanding = api.QuietStanding
	// SentRecord is a recorded send.
	SentRecord = api.Send
	// Limits is the policy in force.
	Limits = api.Policy
	// Limit is a limit of the policy.
	Limit = api.Limit
	// Status is the state of the service.
	Status = api.Status
	// StoreStatus is the state of the store.
	StoreStatus = api.StoreStatus
	// Fleet is the instances that share a store.
	Fleet = api.Fleet
	// SegmentsStatus is the state of the segments.
	SegmentsStatus = api.SegmentsStatus
	// SegmentSize is how large a segment is.
	SegmentSize = api.SegmentSize
	// GuardedSet is a set whose losses of users keep a generation out of use.
	GuardedSet = api.GuardedSet
	// RefusedGeneration is a published generation that is kept out of use.
	RefusedGeneration = api.RefusedGeneration
	// ConfigStatus is the state of the configuration.
	ConfigStatus = api.ConfigStatus
	// PermitsRequest asks for permits of pacers.
	PermitsRequest = api.PermitsRequest
	// Permits is what such a request was given.
	Permits = api.Permits
	// Millis is a duration, on the wire in milliseconds.
	Millis = api.Millis
	// PacerState is what a pacer has given out.
	PacerState = api.PacerState
)

// MaxParts is the most parts of an audience.
const MaxParts = api.MaxParts

// What Denial.Limit and the counts of denied users name where no limit of the policy denies.
const (
	LimitSuppressed = api.LimitSuppressed
	LimitHoldout    = api.LimitHoldout
	LimitQuiet      = api.LimitQuiet
)
