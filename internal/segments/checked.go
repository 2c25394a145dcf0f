package segments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"capper/internal/objects"
)

// checkedKey is the document that says when a build last came to its end. It is
// what tells a nightly run that changes nothing from one that does not happen.
const checkedKey = "checked.json"

// Checked is checked.json: the last build that published, or found its segments live already.
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
	raw, newTag, err := src.ReadTagged(ctx, checkedKey, tag)
	if errors.Is(err, objects.ErrNotFound) {
		return c, "", nil
	}
	if err == nil {
		err = decodeDocument(raw, &c)
	}
	if err != nil {
		return Checked{}, "", fmt.Errorf("%s: %w", checkedKey, err)
	}
	return c, newTag, nil
}

// noteChecked writes checked.json.
func (p *Publisher) noteChecked(ctx context.Context, generation string) error {
	c := Checked{FormatVersion: FormatVersion, Generation: generation, CheckedAt: p.now().UTC().Truncate(time.Second)}
	raw, err := json.Marshal(c)
	if err == nil {
		err = p.Location.Overwrite(ctx, checkedKey, append(raw, '\n'))
	}
	if err != nil {
		return fmt.Errorf("%s is live, but when it was checked could not be noted: %w", generation, err)
	}
	return nil
}
