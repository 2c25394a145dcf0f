package ingest

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"capper/internal/objects"
	"capper/internal/objects/s3test"
)

// halving simulates a proxy that truncates objects whose key ends in name: it returns half of the
// body, up to the end of a line, with consistent headers.
func halving(t *testing.T, name string) (endpoint string) {
	return s3test.Proxy(t, func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || path.Base(r.URL.Path) != name {
				server.ServeHTTP(w, r)
				return
			}
			whole := httptest.NewRecorder()
			server.ServeHTTP(whole, r)
			body := whole.Body.Bytes()
			half := body[:len(body)/2]
			half = half[:bytes.LastIndexByte(half, '\n')+1]
			for key, values := range whole.Header() {
				if key != "Content-Length" && !bytes.HasPrefix([]byte(key), []byte("X-Amz-Checksum")) {
					w.Header()[key] = values
				}
			}
			w.Header().Set("Content-Length", strconv.Itoa(len(half)))
			w.WriteHeader(whole.Code)
			_, _ = w.Write(half)
		})
	})
}

// TestObjectThatIsShorterThanItsListingIsNoFile checks that an input must have the length in the
// listing, or the length that the server returned for a single object.
func TestObjectThatIsShorterThanItsListingIsNoFile(t *testing.T) {
	t.Parallel()
	bucket := s3test.Bucket(t)
	row := map[string]string{"txt": "1234567\n", "csv": "1234567,x\n", "tsv": "1234567\tx\n",
		"ndjson": "{\"user_id\":1234567}\n"}
	put := func(key string, body []byte) {
		_, err := s3test.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key,
			Body: bytes.NewReader(body)})
		require.NoError(t, err)
	}
	for kind, line := range row {
		for _, file := range []string{"a", "b", "c"} {
			put("pat/"+kind+"/"+file+"."+kind, bytes.Repeat([]byte(line), 5000))
		}
		cut, whole := halving(t, "b."+kind), halving(t, "none")
		for _, name := range []string{"pat/" + kind + "/*." + kind, "pat/" + kind + "/b." + kind, "pat/**/*." + kind} {
			in := []Input{{Path: "s3://" + bucket + "/" + name}}
			_, err := NewReader(Config{S3: objects.S3Config{Endpoint: cut}}).ReadIDs(t.Context(), in)
			require.ErrorContains(t, err, "/b."+kind+": the S3 server sends ", name)
			require.ErrorContains(t, err, " announced "+strconv.Itoa(5000*len(line))+
				" bytes: the object was replaced meanwhile, or a proxy truncates it")
			require.ErrorAs(t, err, new(*InputError))
			require.False(t, errors.As(err, new(*objects.StorageError)))
			_, err = NewReader(Config{S3: objects.S3Config{Endpoint: whole}}).ReadIDs(t.Context(), in)
			require.NoError(t, err, name)
		}
	}
	put("empty/a.txt", nil)
	_, err := NewReader(Config{}).ReadIDs(t.Context(), []Input{{Path: "s3://" + bucket + "/empty/*"}})
	require.NoError(t, err)
	// Written anew between the listing and the reading.
	files := objects.NewS3Files(objects.S3Config{})
	found, err := files.Glob(t.Context(), "s3://"+bucket+"/pat/txt/*")
	require.NoError(t, err)
	put("pat/txt/a.txt", []byte("1\n"))
	_, _, err = files.Open(t.Context(), found.Names[0])
	require.ErrorContains(t, err, "the S3 server sends 2 bytes, but the listing announced 40000 bytes: ")
}
