package server

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"capper/client/api"
)

// bodies maps the name of each schema to the Go type of the request or answer.
var bodies = map[string]any{
	"FilterRequest": api.FilterRequest{}, "FilterIDs": api.FilterIDs{}, "FilterBitmaps": api.FilterBitmaps{},
	"FilterPacked": api.FilterPacked{}, "WavePacked": api.WavePacked{}, "ReleasePacked": api.ReleasePacked{},
	"LookupPacked":    api.LookupPacked{},
	"FilterPositions": api.FilterPositions{}, "WavePositions": api.WavePositions{},
	"ReleasePositions": api.ReleasePositions{}, "LookupPositions": api.LookupPositions{}, "IDs": api.IDs{},
	"WaveIDs": api.WaveIDs{}, "WaveBitmap": api.WaveBitmap{}, "Denial": api.Denial{}, "Summary": api.Summary{},
	"SendsCheckRequest": api.SendsCheckRequest{}, "SendsCheck": api.SendsCheck{}, "MissingSends": api.MissingSends{},
	"SendsCheckSummary": api.SendsCheckSummary{},
	"AcceptRequest":     api.AcceptRequest{}, "Accepted": api.Accepted{}, "AcceptedLoss": api.AcceptedLoss{},
	"ImportRequest": api.ImportRequest{}, "ImportedSend": api.ImportedSend{}, "ImportAnswer": api.ImportAnswer{},
	"ImportSummary":  api.ImportSummary{},
	"ReleaseRequest": api.ReleaseRequest{}, "ReleaseIDs": api.ReleaseIDs{}, "ReleaseBitmaps": api.ReleaseBitmaps{},
	"ReleaseSummary": api.ReleaseSummary{}, "Explanation": api.Explanation{}, "Standing": api.Standing{},
	"Send":   api.Send{},
	"Policy": api.Policy{}, "Limit": api.Limit{}, "Status": api.Status{}, "Probe": api.Probe{}, "Error": api.Error{},
	"PermitsRequest": api.PermitsRequest{}, "Permits": api.Permits{}, "Slot": api.Slot{}, "LimitedBy": api.LimitedBy{},
	"PermitsReturn": api.PermitsReturn{}, "PermitsReturned": api.PermitsReturned{},
	"PacerReturned": api.PacerReturned{},
	"PacerState":    api.PacerState{}, "PacerLimitUse": api.PacerLimitUse{}, "Pacers": api.Pacers{},
	"Sample": api.Sample{}, "Part": api.Part{}, "AudienceTaken": api.AudienceTaken{},
	"AudienceCountRequest": api.AudienceCountRequest{}, "AudienceCount": api.AudienceCount{},
	"ForecastRequest": api.ForecastRequest{}, "Forecast": api.Forecast{}, "ForecastPoint": api.ForecastPoint{},
	"LimitUse": api.LimitUse{}, "UseStep": api.UseStep{},
	"WhatIfRequest": api.WhatIfRequest{}, "LimitChange": api.LimitChange{}, "WhatIf": api.WhatIf{},
	"WhatIfRow": api.WhatIfRow{}, "WhatIfCounts": api.WhatIfCounts{}, "WhatIfChange": api.WhatIfChange{},
	"WhatIfUsers": api.WhatIfUsers{}, "WhatIfStep": api.WhatIfStep{},
	"Generations": api.Generations{}, "GenerationInfo": api.GenerationInfo{},
	"GenerationChanges": api.GenerationChanges{},
	"SegmentChange":     api.SegmentChange{}, "SegmentMove": api.SegmentMove{},
	"NoSegmentChange": api.NoSegmentChange{},
	"Decisions":       api.Decisions{}, "Decision": api.Decision{}, "DecidedUsers": api.DecidedUsers{},
	"DecidedIDs": api.DecidedIDs{},
	"Segments":   api.Segments{}, "SegmentInfo": api.SegmentInfo{}, "LookupRequest": api.LookupRequest{},
	"LookupIDs":  api.LookupIDs{},
	"UserLookup": api.UserLookup{}, "LookupBitmaps": api.LookupBitmaps{}, "Members": api.Members{},
	"SetChange": api.SetChange{}, "SetChanged": api.SetChanged{}, "Sets": api.Sets{}, "SetInfo": api.SetInfo{},
	"LiveSet": api.LiveSet{}, "SetMembers": api.SetMembers{}, "MemberChange": api.MemberChange{},
	"SetMemberStrings": api.SetMemberStrings{}, "MemberChangeOfID": api.MemberChangeOfID{},
	"MemberStrings":  api.MemberStrings{},
	"LiveMembership": api.LiveMembership{},
	"AuditStatus":    api.AuditStatus{}, "Messages": api.Messages{}, "Message": api.Message{},
	"MessageSegment": api.MessageSegment{}, "MessageSegmentUsers": api.MessageSegmentUsers{},
	"MessageChannels": api.MessageChannels{},
	"MessageUsers":    api.MessageUsers{}, "TitleRequest": api.TitleRequest{}, "MessageTitle": api.MessageTitle{},
	"PacerShare":            api.PacerShare{},
	"ReleaseMessageRequest": api.ReleaseMessageRequest{}, "ReleasedMessage": api.ReleasedMessage{},
	"GuardedSet": api.GuardedSet{}, "RefusedGeneration": api.RefusedGeneration{},
	"Pressure": api.Pressure{}, "PressureWeek": api.PressureWeek{}, "PressurePeople": api.PressurePeople{},
	"PressureSpread": api.PressureSpread{}, "PressureAtLimit": api.PressureAtLimit{},
	"PressureLimitUsers": api.PressureLimitUsers{}, "PressureUsers": api.PressureUsers{},
	"PressureMessage": api.PressureMessage{}, "PressureCampaign": api.PressureCampaign{},
	"PressureHeld": api.PressureHeld{}, "PressureTaken": api.PressureTaken{},
	"Suppression": api.Suppression{}, "Holdout": api.Holdout{}, "Quiet": api.Quiet{},
	"QuietStanding": api.QuietStanding{},
	"Activity":      api.Activity{}, "ActivityHour": api.ActivityHour{}, "ActivityPart": api.ActivityPart{},
}

// stringBodies maps the name of each schema whose ids may be strings to the Go type with such ids.
var stringBodies = map[string]any{
	"FilterIDs": api.FilterStrings{}, "WaveIDs": api.WaveStrings{}, "Denial": api.DenialOfID{},
	"ReleaseIDs": api.ReleaseStrings{}, "LookupIDs": api.LookupStrings{}, "UserLookup": api.UserLookupOfID{},
	"Explanation": api.ExplanationOfID{}, "ImportRequest": api.ImportRequestStrings{},
	"ImportedSend": api.ImportedSendOfID{}, "ImportAnswer": api.ImportAnswerStrings{},
	"SendsCheck": api.SendsCheckStrings{}, "MissingSends": api.MissingStrings{},
	"Decisions": api.DecisionsOfID{},
}

// onlyStrings maps the name of a schema to a property that its type with ids as numbers lacks: an expression is never
// answered with lists of numbers, and dense ids have no images.
var onlyStrings = map[string]string{"FilterIDs": "audience", "ReleaseIDs": "audience", "LookupIDs": "audience",
	"ImportedSend": "image"}

// TestEveryFieldIsDescribed checks that the description lists each field of a wire type, with its kind, and whether
// it may be absent or null, and no other field.
func TestEveryFieldIsDescribed(t *testing.T) {
	t.Parallel()
	c := &comparison{t: t, seen: map[string]bool{}}
	schemas := described(t).Components.Schemas
	for name, body := range stringBodies {
		c.value(name, reflect.TypeOf(body), schemas[name].Value)
	}
	for name, lacks := range onlyStrings {
		schema := schemas[name].Value
		require.Contains(t, schema.Properties, lacks)
		if delete(schema.Properties, lacks); lacks == "image" { // which an id may be left out for
			schema.Required = append(schema.Required, "user_id")
		}
	}
	for name, schema := range schemas {
		if len(flatten(schema.Value).properties) == 0 {
			continue // a plain value, or one of several types
		}
		body, ok := bodies[name]
		require.True(t, ok, "schema %s has no type in package api", name)
		c.value(name, reflect.TypeOf(body), schema.Value)
	}
	for name := range bodies {
		require.True(t, c.seen[name], "%s has no schema", name)
	}
	for _, name := range declared(t, "../../client/api") {
		require.True(t, c.seen[name], "api.%s is on no wire that is described", name)
	}
}

// declared returns the exported structs in a package's source files.
func declared(t *testing.T, dir string) (names []string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() {
				if _, ok := spec.Type.(*ast.StructType); ok {
					names = append(names, spec.Name.Name)
				}
			}
			return true
		})
	}
	require.Greater(t, len(names), 20)
	return names
}

// comparison compares types with schemas.
type comparison struct {
	t    *testing.T
	seen map[string]bool // types, by name
}

func (c *comparison) value(path string, of reflect.Type, schema *openapi3.Schema) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	for _, one := range schema.AnyOf {
		if flatten(one.Value).kind == kinds[of.Kind()] {
			schema = one.Value
			break
		}
	}
	s := flatten(schema)
	switch of {
	case reflect.TypeFor[time.Time]():
		require.Equal(c.t, "string date-time", s.kind+" "+s.format, path)
		return
	case reflect.TypeFor[[]byte]():
		require.Equal(c.t, "string byte", s.kind+" "+s.format, path)
		return
	case reflect.TypeFor[api.Wait]():
		require.Equal(c.t, "string", s.kind, path)
		return
	case reflect.TypeFor[api.Millis]():
		require.Equal(c.t, "number", s.kind, path)
		return
	case reflect.TypeFor[api.Bitmap]():
		c.seen["Bitmap"] = true
		require.Equal(c.t, "string byte", s.kind+" "+s.format, path)
		return
	}
	require.Equal(c.t, kinds[of.Kind()], s.kind, "%s: %s", path, of)
	switch of.Kind() {
	case reflect.Slice:
		c.value(path+"[]", of.Elem(), s.items.Value)
	case reflect.Map:
		c.value(path+"{}", of.Elem(), s.values.Value)
	case reflect.Struct:
		c.seen[of.Name()] = true
		c.fields(path, of, s)
	}
}

var kinds = map[reflect.Kind]string{
	reflect.Struct: "object", reflect.Map: "object", reflect.Slice: "array", reflect.String: "string",
	reflect.Bool: "boolean",
	reflect.Int:  "integer", reflect.Int64: "integer", reflect.Uint8: "integer", reflect.Uint32: "integer",
	reflect.Uint64:  "integer",
	reflect.Float64: "number",
}

func (c *comparison) fields(path string, of reflect.Type, s flat) {
	var names []string
	for _, field := range reflect.VisibleFields(of) {
		if field.Anonymous {
			c.seen[field.Type.Name()] = true
			continue
		}
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		property := s.properties[name]
		require.NotNil(c.t, property, "%s.%s is not described", path, name)
		optional := option == "omitempty" || option == "omitzero"
		require.Equal(c.t, !optional, slices.Contains(s.required, name), "%s.%s: whether it is required", path, name)
		nullable := field.Type.Kind() == reflect.Pointer && !optional
		require.Equal(c.t, nullable, property.Value.Nullable, "%s.%s: whether it may be null", path, name)
		c.value(path+"."+name, field.Type, property.Value)
		names = append(names, name)
	}
	for name := range s.properties {
		require.Contains(c.t, names, name, "%s.%s is described and in no type", path, name)
	}
}

// flat is a schema together with the schemas that it includes.
type flat struct {
	kind, format  string
	required      []string
	properties    openapi3.Schemas
	items, values *openapi3.SchemaRef
}

func flatten(schema *openapi3.Schema) flat {
	f := flat{format: schema.Format, required: schema.Required, properties: openapi3.Schemas{}, items: schema.Items,
		values: schema.AdditionalProperties.Schema}
	if schema.Type != nil {
		f.kind = (*schema.Type)[0]
	}
	for name, property := range schema.Properties {
		f.properties[name] = property
	}
	for _, part := range schema.AllOf {
		p := flatten(part.Value)
		f.kind, f.items, f.values = p.kind, p.items, p.values
		f.required = append(f.required, p.required...)
		for name, property := range p.properties {
			f.properties[name] = property
		}
	}
	return f
}
