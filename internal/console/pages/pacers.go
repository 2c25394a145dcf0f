package pages

import (
	"capper/client/api"
	"capper/internal/console/frame"
)

// Pacers is how fast providers may be called, and how fast they are.
func Pacers() frame.Page {
	return frame.Page{Path: "pacers", Nav: "Pacers", Live: true, Template: "pacers.html", Files: files, Show: showPacers}
}

func showPacers(v *frame.Visit) (*frame.View, error) {
	pacers, err := v.API.Pacers(v.Context())
	if err != nil {
		return nil, err
	}
	return &frame.View{
		Title:    "Pacers",
		Question: "How fast may providers be called, how much of that is used, and who waits?",
		Data:     pacers,
		Tables:   []*frame.Table{pacersTable(pacers)},
		Calls:    []string{"GET /v1/pacers"},
	}, nil
}

func pacersTable(*api.Pacers) *frame.Table {
	return &frame.Table{Name: "pacers", Caption: "Pacers", Empty: "The configuration has no pacers. Add them under pacers to share a provider's rate between all senders."}
}
