package pages

import "capper/internal/console/frame"

// Overview is how the service is, and what it decided lately.
func Overview() frame.Page {
	return frame.Page{Path: "", Nav: "Overview", Live: true, Template: "overview.html", Files: files, Show: showOverview}
}

func showOverview(v *frame.Visit) (*frame.View, error) {
	status, err := v.API.Status(v.Context())
	if err != nil {
		return nil, err
	}
	return &frame.View{
		Title:    "Overview",
		Question: "Is everything in order, and what was decided lately?",
		Data:     states(status, v.Now),
		Calls:    []string{"GET /v1/status"},
	}, nil
}
