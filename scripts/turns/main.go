// Command turns compares the processor time of two versions of capper for the same filter calls. The command "turns"
// sends each filter call to one version after the other. The command prints the time per user, separately for the users
// of a blast (large campaign) and for random users. The time consists of the time of the service (HTTP, decoding,
// segments, store) and the time of Redis. In addition, a third service runs the new version with live changes of a set
// (changes by API calls) for 1 % of the users. Each of the three services uses a separate Redis Cluster. Start the
// command "turns" on an idle machine, in the root directory of the repository:
//
//	go run ./scripts/turns --before OLD/capper --segmentbuild OLD/segmentbuild
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const batch = 10_000 // number of users in a call

// A side is one of the compared services: a running service together with the service's Redis Cluster.
type side struct {
	name    string
	url     string
	service *exec.Cmd
	servers string // directory of the Redis servers
	redis   []int  // process ids of the Redis servers
}

func main() {
	before := flag.String("before", "", "the old program capper")
	after := flag.String("after", "build/bin/capper", "the new program capper")
	builder := flag.String("segmentbuild", "", "the old program segmentbuild, whose generations both read")
	users := flag.Int("users", 1_000_000, "users of a blast, every 27th id")
	rounds := flag.Int("rounds", 9, "messages to these users on each side")
	flag.Parse()
	if err := run(*before, *after, *builder, *users, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "turns: error:", err)
		os.Exit(1)
	}
}

func run(before, after, builder string, users, rounds int) error {
	dir, err := os.MkdirTemp("", "turns")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ids := make([]uint32, users)
	for i := range ids {
		ids[i] = uint32(i) * 27
	}
	if err := publish(dir, builder, ids); err != nil {
		return err
	}
	var sides []*side
	defer func() {
		for _, s := range sides {
			s.stop()
		}
	}()
	for _, s := range []struct{ name, program string }{
		{"before", before}, {"after", after}, {"after, 1 % changed", after},
	} {
		started, err := start(filepath.Join(dir, fmt.Sprint(len(sides))), dir, s.name, s.program)
		if started != nil {
			sides = append(sides, started)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	if err := sides[2].change(ids); err != nil {
		return err
	}
	for _, load := range []string{"blast", "random users"} {
		if load == "random users" {
			rand.New(rand.NewPCG(1, 2)).Shuffle(users, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		}
		if err := compare(load, sides, ids, rounds); err != nil {
			return err
		}
	}
	return nil
}

// The function "publish" publishes all users as one segment, and an empty set, with the program segmentbuild.
func publish(dir, builder string, ids []uint32) error {
	var text bytes.Buffer
	for _, id := range ids {
		fmt.Fprintln(&text, id)
	}
	if err := os.WriteFile(filepath.Join(dir, "all.txt"), text.Bytes(), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "out.txt"), []byte("1\n"), 0o600); err != nil {
		return err
	}
	out, err := exec.Command(builder, "build", "--to", filepath.Join(dir, "location"), "--segment",
		"all="+filepath.Join(dir, "all.txt"), "--set", "opted-out="+filepath.Join(dir, "out.txt")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// The function "start" starts three Redis masters, and a service that uses these masters.
func start(own, dir, name, program string) (*side, error) {
	s := &side{name: name, servers: own + "-redis"}
	out, err := exec.Command("scripts/cluster.sh", "up", s.servers, "--replicas", "0").CombinedOutput()
	if err != nil {
		return s, fmt.Errorf("%w: %s", err, out)
	}
	pids, err := filepath.Glob(own + "-redis/*.pid")
	if err != nil {
		return s, err
	}
	for _, file := range pids {
		text, err := os.ReadFile(file)
		if err != nil {
			return s, err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return s, err
		}
		s.redis = append(s.redis, pid)
	}
	env, err := os.ReadFile(own + "-redis/env")
	if err != nil {
		return s, err
	}
	addrs := regexp.MustCompile(`CAPPER_TEST_REDIS='?([0-9.:,]+)`).FindSubmatch(env)
	file := own + ".yaml"
	text := fmt.Sprintf(`server: {listen: "127.0.0.1:0", admin_listen: "127.0.0.1:0"}
segments: {source: %s/location, cache_dir: %s-cache}
store: {kind: redis, redis: {addrs: [%s], replica_acks: 0}}
channels: {push: 1}
limits: {default: {}, segments: {all: {daily: 100, weekly: 100}}}
suppress: {opted-out: all}
`, dir, own, strings.ReplaceAll(string(addrs[1]), ",", ", "))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return s, err
	}
	logged, err := os.Create(own + ".log")
	if err != nil {
		return s, err
	}
	defer logged.Close()
	s.service = exec.Command(program, "serve", "--config", file)
	s.service.Stderr = logged
	if err := s.service.Start(); err != nil {
		return s, err
	}
	for range 300 {
		time.Sleep(100 * time.Millisecond)
		log, _ := os.ReadFile(own + ".log")
		if m := regexp.MustCompile(`what=api address=(\S+)`).FindSubmatch(log); m != nil {
			s.url = "http://" + string(m[1])
			r, err := http.Get(s.url + "/readyz")
			if err == nil && r.Body.Close() == nil && r.StatusCode == http.StatusOK {
				return s, nil
			}
		}
	}
	log, _ := os.ReadFile(own + ".log")
	return s, fmt.Errorf("not ready after 30 s: %s", log)
}

func (s *side) stop() {
	if s.service != nil && s.service.Process != nil {
		_ = s.service.Process.Kill()
		_ = s.service.Wait()
	}
	_ = exec.Command("scripts/cluster.sh", "down", s.servers).Run()
}

// The method "change" makes API calls that remove 1 % of the users from the set. These users are not in the set, so
// decisions do not change.
func (s *side) change(ids []uint32) error {
	var some []uint32
	for i := 0; i < len(ids); i += 100 {
		some = append(some, ids[i])
	}
	body, err := json.Marshal(map[string]any{"remove": some})
	if err != nil {
		return err
	}
	return s.post("/v1/sets/opted-out/members", body, nil)
}

func (s *side) post(path string, body []byte, answer any) error {
	r, err := http.Post(s.url+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", path, r.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// The function "compare" sends each filter call to all services in turn, and prints the medians over the rounds.
func compare(load string, sides []*side, ids []uint32, rounds int) error {
	service := make([][]float64, len(sides))
	redis := make([][]float64, len(sides))
	for round := range rounds + 1 {
		bodies := encode(fmt.Sprintf("%s %d", load, round), ids)
		spent := make([][2]float64, len(sides))
		for k, body := range bodies {
			for i := range sides {
				i = (i + k) % len(sides)
				ours, stores, err := sides[i].filter(body)
				if err != nil {
					return err
				}
				spent[i][0] += ours
				spent[i][1] += stores
			}
		}
		if round == 0 { // the first round creates the logs of the users
			continue
		}
		each := float64(len(bodies)*batch) * 1000
		for i := range sides {
			service[i] = append(service[i], spent[i][0]/each)
			redis[i] = append(redis[i], spent[i][1]/each)
		}
	}
	for i, s := range sides {
		fmt.Printf("%-13s %-19s service %.3f µs (%+.1f %%), Redis %.3f µs (%+.1f %%)\n",
			load, s.name,
			median(service[i]), 100*(ratio(service[i], service[0])-1),
			median(redis[i]), 100*(ratio(redis[i], redis[0])-1))
	}
	return nil
}

// The method "filter" makes a filter call, and returns the processor time, in nanoseconds, that the service and Redis
// used for the call.
func (s *side) filter(body []byte) (service, redis float64, err error) {
	service, redis = processorTime(s.service.Process.Pid), processorTime(s.redis...)
	var answer struct {
		Allowed []uint32 `json:"allowed"`
	}
	if err := s.post("/v1/filter", body, &answer); err != nil {
		return 0, 0, err
	}
	if len(answer.Allowed) != batch {
		return 0, 0, fmt.Errorf("%s: %d of %d users allowed", s.name, len(answer.Allowed), batch)
	}
	return processorTime(s.service.Process.Pid) - service, processorTime(s.redis...) - redis, nil
}

// The function "encode" returns the request bodies of the filter calls for the users.
func encode(message string, ids []uint32) [][]byte {
	var bodies [][]byte
	for part := range slices.Chunk(ids[:len(ids)/batch*batch], batch) {
		body, _ := json.Marshal(map[string]any{"message_id": message, "channel": "push", "user_ids": part})
		bodies = append(bodies, body)
	}
	return bodies
}

// processorTime returns the processor time, in nanoseconds, that all threads of the given processes have used.
func processorTime(pids ...int) float64 {
	total := 0.0
	for _, pid := range pids {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, thread := range threads {
			text, _ := os.ReadFile(thread)
			ran, _, _ := strings.Cut(string(text), " ")
			n, _ := strconv.ParseFloat(ran, 64)
			total += n
		}
	}
	return total
}

// The function "ratio" returns the ratio of two processor times: the median over all rounds.
func ratio(of, to []float64) float64 {
	ratios := make([]float64, len(of))
	for i := range of {
		ratios[i] = of[i] / to[i]
	}
	return median(ratios)
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
