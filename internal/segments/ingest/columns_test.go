package ingest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/segments/ingest/format"
)

// TestColumnsOfUsersAreTaken checks that a column is chosen without a request only if its name looks
// like user ids.
func TestColumnsOfUsersAreTaken(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"user_id", "userid", "USERID", "userId", "UserID", "User Id", "user-id", "user.id", "user", "uid", "UID",
		"u_id", "id", "_id", "ID",
		"member", "member_id", "memberId", "MEMBERID", "customer", "customer_id", "CustomerID", "account", "account_id",
		"client", "clientId",
		"subscriber", "SUBSCRIBER_ID", "person", "person_id", "profile", "profileId", "contact", "contact-id",
		"recipient", "recipient_id",
	} {
		for _, other := range []string{"campaign_id", "order_id", "sessionId", "DEVICE ID", "paid", "segment_id",
			"amount"} {
			content := fmt.Sprintf("%s,%s\n%s", other, name, strings.Repeat("9,3\n9,1\n", 100))
			ids, err := read(t, Input{Path: write(t, "a.csv", []byte(content))})
			require.NoError(t, err, "%s,%s", other, name)
			require.Equal(t, []uint32{1, 3}, ids, "%s,%s", other, name)
		}
	}
}

func TestIdsOfOtherThingsAreNotTaken(t *testing.T) {
	t.Parallel()
	for header, named := range map[string]string{
		"order_id,amount":                `"order_id"`,
		"msisdn,session_id,amount":       `"session_id"`,
		"campaignId,OrderID,Device ID,x": `"campaignId", "OrderID", "Device ID"`,
		"amount,crm_user_id":             `"crm_user_id"`,
		"order_id":                       `"order_id"`,
	} {
		row := strings.Repeat("7,", strings.Count(header, ",")) + "7"
		for _, file := range []string{"a.csv", "a.tsv", "a.txt"} {
			content := header + "\n" + strings.Repeat(row+"\n", 1000)
			switch {
			case file == "a.tsv":
				content = strings.ReplaceAll(content, ",", "\t")
			case file == "a.txt" && strings.Contains(header, ","):
				continue
			}
			path := write(t, file, []byte(content))
			_, err := read(t, Input{Path: path})
			var fault *InputError
			require.ErrorAs(t, err, &fault, header)
			require.ErrorContains(t, err, "other id columns exist ("+named+"): select one with --id-column")
			for _, asked := range []string{"1", strings.Split(header, ",")[0]} {
				ids, err := read(t, Input{Path: path, IDColumn: asked, Header: format.HeaderYes})
				require.NoError(t, err, header)
				require.Equal(t, []uint32{7}, ids)
			}
		}
	}
	// Nothing that looks like an id: the first column, as ever.
	ids, err := read(t, Input{Path: write(t, "a.csv", []byte("msisdn,paid\n3,1\n")), Header: format.HeaderYes})
	require.NoError(t, err)
	require.Equal(t, []uint32{3}, ids)
}
