package testkit

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

var namespaces atomic.Int64

// Namespace is one of the Redis stores that no other test of a shared cluster
// uses, also not of another process. It lies below fc:, to which the users of
// Redis that documents advise are confined.
func Namespace() string {
	return fmt.Sprintf("fc:t%d-%d-%d", os.Getpid(), time.Now().UnixMilli(), namespaces.Add(1))
}
