package main

import (
	"bytes"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"capper/internal/objects/s3test"
	"capper/internal/terminal"
)

// Status 1 asks to run again, status 3 to mend the export: a fault on the way to an input is no fault of it.
func TestFaultsOnTheWayToAnInputAreNoBadInput(t *testing.T) {
	t.Parallel()
	answer := func(status int, code string) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(status)
			_, _ = w.Write([]byte("<Error><Code>" + code + "</Code><Message>x</Message></Error>"))
		}
	}
	pass := func(w http.ResponseWriter, r *http.Request, server http.Handler) { server.ServeHTTP(w, r) }
	later := "hint: a longer --timeout"
	for name, c := range map[string]struct {
		serve   func(w http.ResponseWriter, r *http.Request, server http.Handler)
		refused bool // there is no server
		key     string
		timeout string
		status  int
		talk    []string
	}{
		"nothing": {serve: pass, key: "a.txt", status: int(terminal.Done)},
		"500": {serve: answer(500, "InternalError"), key: "a.txt", timeout: "8s",
			status: int(terminal.Failure), talk: []string{"status 500, InternalError",
				"command did not finish within --timeout 8s",
				later}},
		"500 of a list": {serve: answer(500, "InternalError"), key: "*.txt", timeout: "8s",
			status: int(terminal.Failure), talk: []string{"status 500, InternalError",
				"command did not finish within --timeout 8s",
				later}},
		"403": {serve: answer(403, "AccessDenied"), key: "a.txt", status: int(terminal.Failure),
			talk: []string{"status 403, AccessDenied"}},
		"403 of a list": {serve: answer(403, "AccessDenied"), key: "**/*.txt",
			status: int(terminal.Failure), talk: []string{"status 403, AccessDenied"}},
		"connection refused": {refused: true, key: "a.txt", timeout: "8s", status: int(terminal.Failure),
			talk: []string{"connection refused", "command did not finish within --timeout 8s", later}},
		"a time-out before anything": {serve: pass, key: "a.txt", timeout: "1ns", status: int(terminal.Failure),
			talk: []string{"command did not finish within --timeout 1ns", later}},
		"it stalls until the time-out": {serve: func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
			<-r.Context().Done()
		},
			key: "a.txt", timeout: "1s", status: int(terminal.Failure), talk: []string{"command did not finish " +
				"within --timeout 1s",
				later}},
		"a body that breaks": {serve: cutAfter(1000), key: "a.txt", status: int(terminal.Failure),
			talk: []string{"6 times in a row"}},
		"412 on reading on": {serve: func(w http.ResponseWriter, r *http.Request, server http.Handler) {
			if r.Header.Get("Range") != "" {
				answer(412, "PreconditionFailed")(w, r, server)
				return
			}
			cutAfter(1000)(w, r, server)
		}, key: "a.txt", status: int(terminal.Failure), talk: []string{"status 412",
			"the object was replaced while it was read"}},

		"no such object": {serve: pass, key: "b.txt", status: int(terminal.BadInput), talk: []string{"not found"}},
		"nothing matches": {serve: pass, key: "b*.txt", status: int(terminal.BadInput),
			talk: []string{"no file matches"}},
		"no such bucket": {serve: answer(404, "NoSuchBucket"), key: "a.txt", status: int(terminal.BadInput),
			talk: []string{"the bucket does not exist"}},
		"a damaged archive": {serve: pass, key: "damaged.txt.gz", status: int(terminal.BadInput),
			talk: []string{"gzip"}},
		"no Parquet": {serve: pass, key: "c.parquet", status: int(terminal.BadInput),
			talk: []string{"parquet"}},
		"a pattern's fault": {serve: pass, key: "a**.txt", status: int(terminal.BadInput),
			talk: []string{"must be a whole path element"}},
		"a last line, ended": {serve: pass, key: "unended.txt", status: int(terminal.BadInput),
			talk: []string{"the last line does not end"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input := "s3://" + inputs(t) + "/" + c.key
			endpoint := "http://127.0.0.1:1"
			if !c.refused {
				endpoint = s3test.Proxy(t, func(server http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.serve(w, r, server) })
				})
			}
			args := []string{"build", "--to", t.TempDir(), "--segment", "vip=" + input, "--s3-endpoint", endpoint}
			if c.timeout != "" {
				args = append(args, "--timeout", c.timeout)
			}
			status, _, talk := command(t, "", args...)
			require.Equal(t, c.status, status, talk)
			for _, want := range c.talk {
				require.Contains(t, talk, want)
			}
		})
	}
}

// cutAfter lets so many bytes of an object through, and nothing of the rest.
func cutAfter(n int) func(w http.ResponseWriter, r *http.Request, server http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if r.Header.Get("Range") != "" {
			s3test.CutBody(w, r, server, 0)
			return
		}
		s3test.CutBody(w, r, server, n)
	}
}

// inputs makes a bucket with good and bad inputs.
func inputs(t *testing.T) (bucket string) {
	t.Helper()
	bucket = s3test.Bucket(t)
	ids := bytes.Repeat([]byte("1234567\n"), 10_000)
	for key, content := range map[string][]byte{
		"a.txt": ids, "damaged.txt.gz": append([]byte("\x1f\x8b"), ids...),
		"c.parquet": ids, "unended.txt": append(ids[:len(ids):len(ids)], '1'),
	} {
		_, err := s3test.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key,
			Body: bytes.NewReader(content)})
		require.NoError(t, err)
	}
	return bucket
}

// A folder of temporary files that takes none is no fault of the file that is unpacked into it.
func TestAFolderOfTemporaryFilesThatTakesNoneIsNoBadInput(t *testing.T) {
	input := "s3://" + inputs(t) + "/c.parquet"
	root := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(root, "nowhere"))
	status, _, talk := command(t, "", "build", "--to", root, "--segment", "vip="+input)
	require.Equal(t, int(terminal.Failure), status, talk)
	require.Contains(t, talk, "nowhere")
}
