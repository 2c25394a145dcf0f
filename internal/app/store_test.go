package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping/redisstore"
	"capper/internal/config"
)

func TestCredentialsComeFromOnePlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("one\n")
	cfg := config.RedisStore{Options: redisstore.Config{Username: "capper"}, PasswordFile: file}
	read, err := credentials(cfg)
	require.NoError(t, err)
	for _, password := range []string{"one", "two"} {
		write(password + "\n")
		user, got, err := read()
		require.NoError(t, err)
		require.Equal(t, []string{"capper", password}, []string{user, got})
	}
	write("\n")
	_, err = credentials(cfg)
	require.ErrorContains(t, err, "read store.redis.password_file "+file+": file is empty")
	require.NoError(t, os.Remove(file))
	_, err = credentials(cfg)
	require.ErrorContains(t, err, "no such file")
	t.Setenv(RedisPassword, "secret")
	_, err = credentials(cfg)
	require.ErrorContains(t, err, "must not both be set")
	require.NotContains(t, err.Error(), "secret")
	read, err = credentials(config.RedisStore{})
	require.NoError(t, err)
	require.Nil(t, read)
}

func TestCertificateFilesAreChecked(t *testing.T) {
	t.Parallel()
	_, err := redisTLS(config.RedisTLS{Enabled: true, CertFile: "none.crt", KeyFile: "none.key"})
	require.ErrorContains(t, err, "load store.redis.tls.cert_file and key_file: open none.crt")
	_, err = redisTLS(config.RedisTLS{Enabled: true, CAFile: "none.crt"})
	require.ErrorContains(t, err, "read store.redis.tls.ca_file: open none.crt")
}
