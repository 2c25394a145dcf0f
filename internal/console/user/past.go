package user

import (
	"capper/client"
	"capper/internal/console/frame"
)

// pastOf asks the audit what was decided of the user. Without it the page says the rest.
func pastOf(v *frame.Visit, id uint32, days int) past {
	found, err := v.API.Decisions(v.Context(), id, v.Now.AddDate(0, 0, -days))
	switch {
	case client.HasCode(err, client.CodeConflict):
		return past{Empty: "The audit is off, so denials leave no trace. The key audit of the configuration says " +
			"where decisions are recorded: from then on they are shown here."}
	case err != nil:
		return past{Empty: "The audit could not be read now, so denials are not shown; all else on this page is " +
			"complete. The Overview says how the audit is."}
	}
	p := past{Decisions: found.Decisions, Empty: nothingIn(days)}
	if found.More {
		p.Notes = append(p.Notes, "Older decisions are left out: the audit was read back to "+
			found.Since.UTC().Format("2 Jan 2006, 15:04 UTC")+", which is as much as this page takes.")
	}
	if len(found.Faults) > 0 {
		p.Notes = append(p.Notes, "Some files of the audit cannot be read, and what they hold is missing here: "+
			frame.List(found.Faults)+". capper audit verify says more.")
	}
	return p
}
