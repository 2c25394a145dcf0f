package segments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"capper/internal/objects"
)

// Checked is checked.json: the last build that published, or found its segments
// live already. It is what tells a nightly run that changes nothing from one that
// does not happen.
type Checked struct {
	FormatVersion int       `json:"format_version"`
	Generation    string    `json:"generation"`
	CheckedAt     time.Time `json:"checked_at"`
}

// ReadChecked reads when a build last came to its end. The zero value: none has
// since builds say so.
func ReadChecked(ctx context.Context, src objects.Source) (Checked, error) {
	c, _, err := readChecked(ctx, src, "")
	return c, err
}

func readChecked(ctx context.Context, src objects.Source, tag string) (c Checked, newTag string, err error) {
	raw, newTag, err := src.ReadTagged(ctx, CheckedKey, tag)
	if errors.Is(err, objects.ErrNotFound) {
		return c, "", nil
	}
	if err == nil {
		err = DecodeDocument(raw, &c)
	}
	if err != nil {
		return Checked{}, "", fmt.Errorf("%s: %w", CheckedKey, err)
	}
	return c, newTag, nil
}
