package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"capper/internal/config"
	"capper/internal/segments"
)

// The method "proc" returns the content of a file in the checked process's directory below /proc, or "" if the file is
// unreadable.
func (s *Subject) proc(name string) string {
	process := "self"
	if s.Process > 0 {
		process = strconv.Itoa(s.Process)
	}
	text, _ := os.ReadFile(filepath.Join(cmp.Or(s.Proc, "/proc"), process, name))
	return string(text)
}

// noProcess reports whether the checked process does not exist. On a system without the directory /proc, noProcess
// returns false.
func (s *Subject) noProcess() bool {
	dir := cmp.Or(s.Proc, "/proc")
	if _, err := os.Stat(filepath.Join(dir, "self")); s.Process == 0 || err != nil {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, strconv.Itoa(s.Process)))
	return errors.Is(err, fs.ErrNotExist)
}

// The function "absent" returns a check that reports that the service's process does not exist. If the service's
// process does not exist, the doctor makes no other checks of the process.
func absent(s *Subject) check {
	return check{Name: "process", Look: func(_ context.Context, n *notes) {
		n.Fail("", fmt.Sprintf("process %d does not exist", s.Process), "--pid $(systemctl show -p MainPID --value "+
			"capper), or leave it out", "the operating system limits of the service cannot be checked")
	}}
}

// The method "whose" returns a text for findings that names the checked process.
func (s *Subject) whose() string {
	if s.Process > 0 {
		return fmt.Sprintf("process %d", s.Process)
	}
	return "this process: the limits of the service may differ, see --pid"
}

// The method variable returns the value of an environment variable of the checked process.
func (s *Subject) variable(name string) string {
	if s.Process == 0 {
		return os.Getenv(name)
	}
	for one := range strings.SplitSeq(s.proc("environ"), "\x00") {
		if value, ok := strings.CutPrefix(one, name+"="); ok {
			return value
		}
	}
	return ""
}

// besideConnections is the number of open files that the service needs for the embedded store and for connections to
// Redis, in addition to the connections of callers.
const besideConnections = 1500

// openFiles compares the maximum number of connections in the configuration with the limit on open files of the
// process.
func openFiles(s *Subject) check {
	return check{Name: "process.files", Look: func(_ context.Context, n *notes) {
		allowed := int64(-1)
		for line := range strings.Lines(s.proc("limits")) {
			if rest, ok := strings.CutPrefix(line, "Max open files"); ok && len(strings.Fields(rest)) >= 2 {
				hard := strings.Fields(rest)[1] // the hard limit; Go raises the soft limit to the hard limit
				if hard == "unlimited" {
					n.OK("", "no limit on open files")
					return
				}
				allowed, _ = strconv.ParseInt(hard, 10, 64)
			}
		}
		if allowed < 0 {
			n.Skip("", "the limit is unknown on this operating system")
			return
		}
		listeners := int64(1)
		if s.Config.Server.AdminListen != "" {
			listeners = 2
		}
		need := listeners*int64(s.Config.Server.Bounds.Connections) + besideConnections
		seen := fmt.Sprintf("the limit is %d open files (%s), but the configuration needs %d: %d listeners with %d "+
			"connections each, and %d others",
			allowed, s.whose(), need, listeners, s.Config.Server.Bounds.Connections, besideConnections)
		if allowed < need {
			n.Warn("", seen, fmt.Sprintf("set LimitNOFILE=%d in the unit, or a smaller server.bounds.connections",
				need),
				"further connections are not accepted and files cannot be opened; the embedded store stops when it "+
					"cannot open a file")
			return
		}
		n.OK("", "%s", seen)
	}}
}

// The function memory compares the maximum memory of the service (docs/operating.md) with the memory that the process
// may use.
func memory(s *Subject) check {
	return check{Name: "process.memory", Within: lookTime, Look: func(ctx context.Context, n *notes) {
		need, parts := s.memoryNeed(ctx)
		allowed, from := s.memoryAllowed()
		if allowed == 0 {
			n.Skip("", "the memory of this operating system is unknown; the service needs up to %s: %s",
				bytesText(need),
				parts)
			return
		}
		seen := fmt.Sprintf("%s has %s, and the service needs up to %s: %s", from, bytesText(allowed), bytesText(need),
			parts)
		if allowed < need {
			n.Warn("", seen, "add memory, or reduce server.bounds.body_bytes, answer_bytes, max_in_flight_users, "+
				"store.embedded.cache_size", "the kernel ends a process that exceeds its memory limit")
		} else {
			n.OK("", "%s", seen)
		}
		s.judgeGoLimit(n, allowed, from)
	}}
}

// judgeGoLimit compares GOMEMLIMIT, the limit of Go's garbage collector, with the memory that the process may use.
func (s *Subject) judgeGoLimit(n *notes, allowed int64, from string) {
	given := s.variable("GOMEMLIMIT")
	advice := fmt.Sprintf("GOMEMLIMIT=%dMiB", allowed*9/10>>20)
	switch limit := parseGoBytes(given); {
	case given == "" || given == "off":
		if from != machineMemory {
			n.Warn("GOMEMLIMIT", "not set, and "+from+" has a memory limit", advice,
				"the garbage collector does not know the limit and can exceed it")
		}
	case limit > allowed:
		n.Warn("GOMEMLIMIT", given+" exceeds the available "+
			"memory", advice, "the garbage collector can use so much memory "+
			"that the kernel ends the process")
	default:
		n.OK("GOMEMLIMIT", "%s", given)
	}
}

// parseGoBytes parses a number of bytes in the syntax of Go's environment variables.
func parseGoBytes(text string) int64 {
	for shift, unit := range map[uint]string{40: "TiB", 30: "GiB", 20: "MiB", 10: "KiB"} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			n, _ := strconv.ParseInt(number, 10, 64)
			return n << shift
		}
	}
	n, _ := strconv.ParseInt(strings.TrimSuffix(text, "B"), 10, 64)
	return n
}

// memoryNeed returns the maximum memory of the service in bytes, and an explanation of this number.
func (s *Subject) memoryNeed(ctx context.Context) (int64, string) {
	bytes := int64(0)
	if at, err := openSource(ctx, s); err == nil {
		if m, err := segments.ReadLiveManifest(ctx, at); err == nil {
			for _, entry := range m.Entries() {
				bytes += entry.SizeBytes
			}
			if m.IDs != nil {
				bytes += m.IDs.Dictionary[0].SizeBytes
			}
		}
	}
	return serviceMemory(s.Config, bytes)
}

const machineMemory = "this machine"

// memoryAllowed returns the lowest memory limit of the process's control groups. If no control group has a memory
// limit, memoryAllowed returns the memory of the machine, or 0 for an unknown memory.
func (s *Subject) memoryAllowed() (least int64, from string) {
	for line := range strings.Lines(s.total()) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			least, from = kib<<10, machineMemory
		}
	}
	root := cmp.Or(s.Cgroups, "/sys/fs/cgroup")
	for line := range strings.Lines(s.proc("cgroup")) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		base, file := root, "memory.max"
		if parts[1] != "" {
			if parts[1] != "memory" {
				continue
			}
			base, file = filepath.Join(root, "memory"), "memory.limit_in_bytes"
		}
		for dir := parts[2]; ; dir = filepath.Dir(dir) {
			text, _ := os.ReadFile(filepath.Join(base, dir, file))
			if bound, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bound > 0 &&
				(least == 0 || bound < least) {
				least, from = bound, "the control group "+dir
			}
			if dir == "/" || dir == "." || dir == "" {
				break
			}
		}
	}
	return least, from
}

func (s *Subject) total() string {
	text, _ := os.ReadFile(filepath.Join(cmp.Or(s.Proc, "/proc"), "meminfo"))
	return string(text)
}

// The function "processors" checks that GOMAXPROCS is not larger than the number of processors that the process may
// use.
func processors(s *Subject) check {
	return check{Name: "process.processors", Look: func(_ context.Context, n *notes) {
		given := s.variable("GOMAXPROCS")
		if count, err := strconv.Atoi(given); err == nil && count > runtime.NumCPU() {
			n.Warn("", fmt.Sprintf("GOMAXPROCS is %d, but there are %d processors", count, runtime.NumCPU()),
				"leave GOMAXPROCS out: Go knows the processors and the quota of the control group",
				"threads take turns, and calls wait for those that do not run")
			return
		}
		n.OK("", "%d processors, GOMAXPROCS %s", runtime.NumCPU(), cmp.Or(given, "as Go finds it"))
	}}
}

// serviceMemory computes the maximum memory of the service by the formula in docs/operating.md, Memory.
func serviceMemory(cfg *config.Config, segmentBytes int64) (int64, string) {
	b := cfg.Server.Bounds
	bounds, users := 2*(b.InFlightBytes+b.AnswerBytes), 64*int64(b.InFlightUsers)
	all := bounds + users + 2*segmentBytes + 150<<20
	parts := fmt.Sprintf("%s for bodies and responses, %s for users of calls, %s for two generations, 150 MiB",
		bytesText(bounds), bytesText(users), bytesText(2*segmentBytes))
	if cfg.Store.Kind == config.Embedded {
		cache := cfg.Store.Embedded.CacheBytes + 200<<20
		all += cache
		parts += fmt.Sprintf(", %s for the store", bytesText(cache))
	}
	return all, parts
}
