package testkit

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

var namespaces atomic.Int64

// Namespace returns a Redis key prefix that no other test of a shared cluster uses, even in another process. The
// prefix begins with fc:, because the Redis users in the documents may access only such keys.
func Namespace() string {
	return fmt.Sprintf("fc:t%d-%d-%d", os.Getpid(), time.Now().UnixMilli(), namespaces.Add(1))
}
