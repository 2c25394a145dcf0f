package charts

import (
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// key is what the callers of these tests send.
const key = "crm-1.a-secret"

// pod is the service's container as a process: its command, arguments, environment and files, with the
// folders of the container elsewhere and its ports on loopback.
type pod struct {
	t             *testing.T
	r             *rendering
	config        *testkit.Mount
	public, admin string
	log           *testkit.Log
	process       *exec.Cmd
	ended         chan error
}

// ask is the status of a GET; 0: there was none.
func (p *pod) ask(address, path, key string) int {
	p.t.Helper()
	return p.call(http.MethodGet, address, path, key, "").status
}

// answered is an answer.
type answered struct {
	status int
	body   string
}

func (p *pod) call(method, address, path, key, body string) answered {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, "http://"+address+path, strings.NewReader(body))
	require.NoError(p.t, err)
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answered{}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(p.t, err)
	return answered{response.StatusCode, string(text)}
}

// allows filters two users who may get the message.
func (p *pod) allows(message, users string) bool {
	p.t.Helper()
	answer := p.call(http.MethodPost, p.public, "/v1/filter", key, `{"message_id": "`+message+`", "user_ids": [`+users+
		`]}`)
	return answer.status == http.StatusOK && strings.Contains(answer.body, `"allowed":[`+users+`]`)
}

// stop ends the pod as the kubelet does, within the time that it is given.
func (p *pod) stop() {
	p.t.Helper()
	require.NoError(p.t, p.process.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-p.ended:
		require.NoError(p.t, err, "%s", p.log)
	case <-time.After(time.Duration(p.r.pod().number(p.t, "spec", "terminationGracePeriodSeconds")) * time.Second):
		require.Fail(p.t, "it would be killed", "%s", p.log)
	}
}
