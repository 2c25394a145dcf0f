package testkit

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

var namespaces atomic.Int64

// Namespace returns a unique Redis key prefix, which no other test on the shared cluster gets, even in another process.
// The key prefix begins with "fc:", because the Redis users in the documentation may access only keys that begin with
// "fc:".
func Namespace() string {
	return fmt.Sprintf("fc:t%d-%d-%d", os.Getpid(), time.Now().UnixMilli(), namespaces.Add(1))
}
