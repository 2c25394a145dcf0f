package format

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// userName matches usual names of a column with user ids, in any spelling: user_id, customer-id, MEMBERID, uid,
// subscriber. The expression idName also matches the names of columns with other ids, such as order_id and sessionId.
// Words with a similar ending, such as paid, match neither userName nor idName.
var (
	userName = regexp.MustCompile(
		`^(?i:[ _.-]*(u?[ _.-]*id|(user|member|customer|account|client|subscriber|person|profile|contact|recipient)([ _.-]*id)?))$`)
	idName = regexp.MustCompile(userName.String() + `|[ _.-](?i:id)$|[a-z](Id|ID)$`)
)

// namesID reports whether a name is usual for a column that contains ids of users or of other things. A sentence, such
// as "ERROR: there is no column user_id", is not a name.
func namesID(name string) bool {
	return idName.MatchString(name) && strings.Count(name, " ") < 3 && !strings.ContainsAny(name, ":;,'\"()<>")
}

// userColumn returns the index of the column whose name is usual for user ids, or -1 if no column name looks like an
// id. If only columns with other ids exist, such as order_id, userColumn returns an error, because order numbers look
// like user ids.
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
