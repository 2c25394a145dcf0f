package publish

import (
	"context"
	"strings"

	"capper/internal/objects"
)

// hooked calls before ahead of each call that reads or changes a store.
type hooked struct {
	objects.Location
	before func(call, key string)
	after  func(call, key string) // nil: nothing
}

func (h *hooked) around(call, key string) func() {
	if h.before != nil {
		h.before(call, key)
	}
	return func() {
		if h.after != nil {
			h.after(call, key)
		}
	}
}

func (h *hooked) ReadTagged(ctx context.Context, key, tag string) ([]byte, string, error) {
	defer h.around("look", key)()
	return h.Location.ReadTagged(ctx, key, tag)
}

func (h *hooked) Read(ctx context.Context, key string, limit int64) ([]byte, error) {
	defer h.around("read", key)()
	return h.Location.Read(ctx, key, limit)
}

func (h *hooked) Put(ctx context.Context, key string, body []byte) (bool, error) {
	defer h.around("put", key)()
	return h.Location.Put(ctx, key, body)
}

func (h *hooked) Overwrite(ctx context.Context, key string, body []byte) error {
	defer h.around("overwrite", key)()
	return h.Location.Overwrite(ctx, key, body)
}

func (h *hooked) Replace(ctx context.Context, key string, body []byte, tag string) (string, error) {
	defer h.around("replace", key)()
	return h.Location.Replace(ctx, key, body, tag)
}

func (h *hooked) List(ctx context.Context, prefix string) ([]objects.Object, error) {
	defer h.around("list", prefix)()
	return h.Location.List(ctx, prefix)
}

func (h *hooked) Delete(ctx context.Context, key string) error {
	defer h.around("delete", key)()
	return h.Location.Delete(ctx, key)
}

// eachStep is the first of the steps at which a test of every step comes between at this location,
// and how many it goes on by. Of the two locations on S3, which is slow, each sees every other step.
func eachStep(location string) (first, stride int) {
	switch {
	case !strings.HasPrefix(location, "s3://"):
		return 0, 1
	case strings.HasSuffix(location, "/prefix"):
		return 0, 2
	default:
		return 1, 2
	}
}
