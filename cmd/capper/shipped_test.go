package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the Debian package's configuration has in comments can be put in force as it stands there, each setting alone
// and all of them.
func TestCommentedSettingsOfThePackageAreAccepted(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/debian/capper.yaml")
	require.NoError(t, err)
	settings := commented(string(text))
	require.Len(t, settings, 2, "api_keys, audit")
	all := string(text)
	for _, setting := range settings {
		accepted(t, strings.Replace(string(text), setting, uncommented(setting), 1))
		all = strings.Replace(all, setting, uncommented(setting), 1)
	}
	accepted(t, all)
	require.Regexp(t, otherwise, all)
	accepted(t, otherwise.ReplaceAllString(all, "$1: $2"))
}

// otherwise is a setting with another value for it in the comment behind.
var otherwise = regexp.MustCompile(`(?m)^( *[a-z_]+): \{.*\} +# or (\{.*\})$`)

// commented are the settings in comments, each with the lines below it that belong to it: a comment that begins with
// a key, and those that follow and are indented.
func commented(text string) []string {
	return regexp.MustCompile(`(?m)^ *# [a-z_]+:( .*)?\n( *#  .*\n)*`).FindAllString(text, -1)
}

// uncommented is the setting, with a digest for what the reader is to put in.
func uncommented(setting string) string {
	bare := regexp.MustCompile(`(?m)^( *)# `).ReplaceAllString(setting, "$1")
	return strings.ReplaceAll(bare, "<sha256 of id.secret, hex>", strings.Repeat("0a", 32))
}

func accepted(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "capper.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, err := exec.Command("capper", "check-config", file).CombinedOutput()
	require.NoError(t, err, "%s\n%s", text, out)
}
