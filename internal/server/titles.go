package server

import (
	"context"
	"time"

	"capper/client/api"
	"capper/internal/capping"
)

// titleTime is the time limit for reading the titles of the messages in a response. If the store needs longer, the
// response contains message ids without titles.
const titleTime = time.Second

// The type "titled" is a message that a response names, with a pointer to the response field for the title of the
// message.
type titled struct {
	of capping.Message
	to *string
}

// addTitles reads the titles of all messages in one store call, and writes them to the given fields of the response.
// The title stays empty if the message has none, if the store does not respond in time, or if the caller may not see
// the namespace. If the argument "namespace" is "", the caller may see all namespaces.
func (s *Server) addTitles(ctx context.Context, namespace string, places []titled) {
	if s.messages.Counts == nil {
		return
	}
	var of []capping.Message
	seen := make(map[capping.Message]bool, len(places))
	for _, place := range places {
		if !seen[place.of] && (namespace == "" || namespace == place.of.Namespace) {
			seen[place.of] = true
			of = append(of, place.of)
		}
	}
	if len(of) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, titleTime)
	defer cancel()
	titles, _ := s.messages.Counts.Titles(ctx, of) // after an error, the response shows the titles that were read
	for _, place := range places {
		*place.to = titles[place.of]
	}
}

// titlesOfSends returns pointers to the title fields of messages, in a response that lists the sends of a user.
func titlesOfSends(sends []api.Send) (places []titled) {
	for i := range sends {
		if one := &sends[i]; one.MessageID != nil {
			places = append(places, titled{capping.Message{Namespace: *one.Namespace, ID: *one.MessageID}, &one.Title})
		}
	}
	return places
}

// titlesOfDecisions returns pointers to the title fields of messages, in a response that lists the decisions about a
// user.
func titlesOfDecisions(decisions []api.Decision) (places []titled) {
	for i := range decisions {
		if one := &decisions[i]; one.MessageID != "" {
			places = append(places, titled{capping.Message{Namespace: one.Namespace, ID: one.MessageID}, &one.Title})
		}
	}
	return places
}

// titlesOfCampaigns returns pointers to the title fields of messages, in the rows of a what-if replay.
func titlesOfCampaigns(rows []api.WhatIfRow) (places []titled) {
	for i := range rows {
		one := &rows[i]
		places = append(places, titled{capping.Message{Namespace: one.Namespace, ID: one.Name}, &one.Title})
	}
	return places
}

// titlesOfPressure returns pointers to the title fields of messages, in a response with the messages per person.
func titlesOfPressure(p *api.Pressure) (places []titled) {
	add := func(m *api.PressureMessage) {
		places = append(places, titled{capping.Message{Namespace: m.Namespace, ID: m.MessageID}, &m.Title})
	}
	for i := range p.Campaigns {
		add(&p.Campaigns[i].PressureMessage)
	}
	for i := range p.HeldBack {
		add(&p.HeldBack[i].PressureMessage)
		for k := range p.HeldBack[i].TakenBy {
			add(&p.HeldBack[i].TakenBy[k].PressureMessage)
		}
	}
	return places
}
