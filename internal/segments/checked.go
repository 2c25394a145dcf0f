package segments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"capper/internal/objects"
)

// The type Checked is the content of the object checked.json: the time of the last complete build of the segments. A
// complete build either publishes a generation (published version), or finds that the live generation has the same
// content. The object checked.json thus shows that a nightly build has run, even without changes.
type Checked struct {
	FormatVersion int       `json:"format_version"`
	Generation    string    `json:"generation"`
	CheckedAt     time.Time `json:"checked_at"`
}

// ReadChecked reads the time of the last complete build from checked.json. If no build has recorded its time,
// ReadChecked returns the zero time.
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
