package terminal

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page that owns the exit statuses for users has each of them, by the same words.
func TestDocumentsHaveTheStatuses(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/commands.md")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| (.*?) \|`).FindAllStringSubmatch(string(page), -1)
	require.Len(t, rows, len(meanings))
	for i, row := range rows {
		require.Equal(t, strconv.Itoa(i), row[1])
		require.Contains(t, row[2], meanings[i])
	}
}
