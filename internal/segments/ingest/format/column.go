package format

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The expression userName matches usual names of a column with user ids, in any spelling: user_id, customer-id,
// MEMBERID, uid, subscriber. The expression idName also matches names of columns with other ids, such as order_id and
// sessionId. Words with a similar ending, such as paid, match neither userName nor idName.
var (
	userName = regexp.MustCompile(
		`^(?i:[ _.-]*(u?[ _.-]*id|(user|member|customer|account|client|subscriber|person|profile|contact|recipient)([ _.-]*id)?))$`)
	idName = regexp.MustCompile(userName.String() + `|[ _.-](?i:id)$|[a-z](Id|ID)$`)
)

// namesID reports whether a text is a usual name of a column with ids of users or of other things. A sentence, such as
// "ERROR: there is no column user_id", is not a name.
func namesID(name string) bool {
	return idName.MatchString(name) && strings.Count(name, " ") < 3 && !strings.ContainsAny(name, ":;,'\"()<>")
}

// userColumn returns the index of the column with a usual name for user ids. If no column has a usual name for ids,
// userColumn returns -1. If the file has columns with other ids, such as order_id, but none with user ids, userColumn
// returns an error. A guess would be dangerous, because numbers of other things, such as orders, look like user ids.
func userColumn(names []string) (int, error) {
	found := -1
	var others []string
	for i, name := range names {
		switch {
		case !namesID(name):
		case !userName.MatchString(name):
			others = append(others, strconv.Quote(name))
		case found >= 0:
			return 0, fmt.Errorf("columns %q and %q could both hold user ids: select one", names[found], name)
		default:
			found = i
		}
	}
	if found < 0 && others != nil {
		return 0, fmt.Errorf(
			"no column has a known name for user ids, but other id columns exist (%s): "+
				"select one with --id-column (capper: --column)", strings.Join(others, ", "))
	}
	return found, nil
}
