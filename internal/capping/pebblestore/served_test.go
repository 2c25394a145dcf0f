package pebblestore

import (
	"context"
	"errors"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/live"
	"capper/internal/pacing"
)

// servedDir is the environment variable that makes the test binary serve a store on its standard input and
// output until it is killed.
const servedDir = "CAPPER_TEST_SERVED_DIR"

// pipes joins the two directions of a connection.
type pipes struct {
	io.Reader
	io.WriteCloser
}

func servedChild(dir string) error {
	s, err := Open(context.Background(), Config{Path: dir, IDs: childIDs()})
	if err != nil {
		return err
	}
	server := rpc.NewServer()
	if err := server.RegisterName("Store", &Serving{newLocal(s)}); err != nil {
		return err
	}
	server.ServeConn(pipes{os.Stdin, os.Stdout})
	return errors.New("nobody asks any more")
}

// Serving offers a store to another process. Package rpc requires exported names.
type Serving struct{ store local }

// Release holds the arguments of Store.Release.
type Release struct {
	Token   capping.Token
	Channel capping.Channel
	Users   []capping.UserID
}

// Decide holds the arguments of livetest.Instance.Decide.
type Decide struct {
	Message string
	Record  bool
	Users   []capping.UserID
}

// Answer is the result of any call.
type Answer struct {
	Verdicts []capping.Verdict
	Released []capping.Released
	Merged   []capping.Merged
	Grant    pacing.Grant
	Returned pacing.Returned
	Stored   live.Stored
	Has      bool
	Error    string // "": no error
}

func (a *Answer) fail(err error) error {
	if err != nil {
		a.Error = err.Error()
	}
	return nil
}

// Filter calls Store.Filter.
func (v *Serving) Filter(b *capping.Batch, a *Answer) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a.Verdicts = make([]capping.Verdict, len(b.Users))
	return a.fail(v.store.Filter(ctx, b, a.Verdicts))
}

// Release calls Store.Release.
func (v *Serving) Release(r *Release, a *Answer) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a.Released = make([]capping.Released, len(r.Users))
	return a.fail(v.store.Release(ctx, r.Token, r.Channel, r.Users, a.Released))
}

// Merge calls Store.Merge.
func (v *Serving) Merge(m *capping.Merge, a *Answer) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a.Merged = make([]capping.Merged, len(m.Users))
	return a.fail(v.store.Merge(ctx, m, a.Merged))
}

// TakePermits calls Store.TakePermits.
func (v *Serving) TakePermits(ask *pacing.Ask, a *Answer) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a.Grant, err = v.store.TakePermits(ctx, ask)
	return a.fail(err)
}

// GiveBack is a call of Store.ReturnPermits.
type GiveBack struct {
	Ask  *pacing.Ask
	Used int
}

// ReturnPermits calls Store.ReturnPermits.
func (v *Serving) ReturnPermits(g *GiveBack, a *Answer) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a.Returned, err = v.store.ReturnPermits(ctx, g.Ask, g.Used)
	return a.fail(err)
}

// HasRequest calls Store.HasRequest.
func (v *Serving) HasRequest(request *pacing.Request, a *Answer) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a.Has, err = v.store.HasRequest(ctx, "", *request)
	return a.fail(err)
}

// Change calls Store.Change.
func (v *Serving) Change(b *live.Batch, a *Answer) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a.Stored, err = v.store.Change(ctx, b)
	return a.fail(err)
}

// Decide decides with the capper of the process.
func (v *Serving) Decide(d *Decide, a *Answer) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a.Verdicts = v.store.Decide(ctx, d.Message, d.Record, d.Users)
	return nil
}

// servedStore is a store in another process.
type servedStore struct {
	process *exec.Cmd
	client  *rpc.Client
}

func serveStore(t testing.TB, dir string, ids IDs) *servedStore {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), servedDir+"="+dir, childKind+"="+ids.Kind)
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	return &servedStore{child, rpc.NewClient(pipes{out, in})}
}

// kill kills the process. The method end waits for the process and closes the pipes.
func (s *servedStore) kill(t testing.TB) { require.NoError(t, s.process.Process.Kill()) }

func (s *servedStore) end() {
	_ = s.client.Close()
	_ = s.process.Wait() // the process was killed
}

func (s *servedStore) call(ctx context.Context, method string, args any) (a *Answer, err error) {
	a = new(Answer)
	select {
	case done := <-s.client.Go("Store."+method, args, a, make(chan *rpc.Call, 1)).Done:
		if err = done.Error; err == nil && a.Error != "" {
			err = errors.New(a.Error)
		}
		return a, err
	case <-ctx.Done():
		return new(Answer), ctx.Err()
	}
}

// Filter calls Filter of the store in the other process.
func (s *servedStore) Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	a, err := s.call(ctx, "Filter", b)
	copy(verdicts, a.Verdicts)
	return err
}

// Release calls Release of the store in the other process.
func (s *servedStore) Release(
	ctx context.Context, token capping.Token, channel capping.Channel, users []capping.UserID,
	released []capping.Released,
) error {
	a, err := s.call(ctx, "Release", &Release{token, channel, users})
	copy(released, a.Released)
	return err
}

// Merge calls Merge of the store in the other process.
func (s *servedStore) Merge(ctx context.Context, m *capping.Merge, merged []capping.Merged) error {
	a, err := s.call(ctx, "Merge", m)
	copy(merged, a.Merged)
	return err
}

// TakePermits calls TakePermits of the store in the other process.
func (s *servedStore) TakePermits(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	a, err := s.call(ctx, "TakePermits", ask)
	return a.Grant, err
}

// ReturnPermits calls ReturnPermits of the store in the other process.
func (s *servedStore) ReturnPermits(ctx context.Context, ask *pacing.Ask, used int) (pacing.Returned, error) {
	a, err := s.call(ctx, "ReturnPermits", &GiveBack{ask, used})
	return a.Returned, err
}

// HasRequest calls HasRequest of the store in the other process.
func (s *servedStore) HasRequest(ctx context.Context, _ string, r pacing.Request) (bool, error) {
	a, err := s.call(ctx, "HasRequest", &r)
	return a.Has, err
}

// ForgetPacer is never called.
func (s *servedStore) ForgetPacer(context.Context, string, string) error {
	return errors.ErrUnsupported
}

// KeepLease is never called.
func (s *servedStore) KeepLease(context.Context, string, pacing.Request, time.Duration, []byte) (pacing.LeaseState,
	error) {
	return 0, errors.ErrUnsupported
}

// EndedLeases is never called.
func (s *servedStore) EndedLeases(context.Context, string, int) ([]pacing.Lease, error) {
	return nil, errors.ErrUnsupported
}

// RemoveLease is never called.
func (s *servedStore) RemoveLease(context.Context, string, pacing.Request) error {
	return errors.ErrUnsupported
}

// Change calls Change of the store in the other process.
func (s *servedStore) Change(ctx context.Context, b *live.Batch) (live.Stored, error) {
	a, err := s.call(ctx, "Change", b)
	if err != nil {
		return live.Stored{Unstored: usersOf(b)}, err
	}
	return a.Stored, nil
}

// Decide decides in the other process.
func (s *servedStore) Decide(ctx context.Context, message string, record bool,
	users []capping.UserID) []capping.Verdict {
	a, err := s.call(ctx, "Decide", &Decide{message, record, users})
	if err != nil {
		return nil
	}
	return a.Verdicts
}
