package format

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// userName are names of the column of the users' ids, however they are spelled:
// user_id, customer-id, MEMBERID, uid, subscriber. idName are those and the names
// of other ids: order_id, sessionId. Words that merely end like one, such as paid,
// are neither.
var (
	userName = regexp.MustCompile(
		`^(?i:[ _.-]*(u?[ _.-]*id|(user|member|customer|account|client|subscriber|person|profile|contact|recipient)([ _.-]*id)?))$`)
	idName = regexp.MustCompile(userName.String() + `|[ _.-](?i:id)$|[a-z](Id|ID)$`)
)

// namesID reports whether a name is that of an id's column, whatever the id is of.
// A sentence, such as "ERROR: there is no column user_id", is not a name.
func namesID(name string) bool {
	return idName.MatchString(name) && strings.Count(name, " ") < 3 && !strings.ContainsAny(name, ":;,'\"()<>")
}

// userColumn is the index of the column that looks like the users' ids by its name,
// -1 when none looks like any id. The id of something else is never taken for a
// user's, nor passed over in silence: orders are numbers just as users are.
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
		return 0, fmt.Errorf("no column has a usual name for user ids, but other id columns exist (%s): select one "+
			"with --id-column (capper: --column)", strings.Join(others, ", "))
	}
	return found, nil
}
