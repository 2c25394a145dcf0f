package cli

import (
	"context"
	"fmt"
	"strings"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/capping"
	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/terminal"
)

// parseImage parses a text such as image:5f1c0b7e22a94d31, and returns the user with this id image (64-bit hash of an
// id). The digits of the id image may be in lower or upper case.
func parseImage(text string) (capping.UserID, bool) {
	digits, found := strings.CutPrefix(text, ids.ImagePrefix)
	image, ok := ids.ParseImage(strings.ToLower(digits))
	return capping.UserID(image), found && ok
}

// The type Names holds the command-line flag for the location of the segments. A generation (published version) of the
// segments contains the data for converting user ids to id images (64-bit hashes), and back.
type Names struct {
	Segments string `placeholder:"DIR|s3://…" help:"Location of the published segments, in which the command finds the original user ids; not needed for user ids of the kind dense (32-bit numbers). Default: segments.source in the file of --config."`
}

// The method "open" opens the location of the segments. If neither the flag nor the configuration names a location of
// segments, the method "open" returns nil.
func (n *Names) open(ctx context.Context, p *Place) (objects.Location, error) {
	source := n.Segments
	if source == "" && p.configured != nil {
		source = p.configured.Segments.Source
	}
	if source == "" {
		return nil, nil
	}
	at, err := objects.Open(ctx, source, p.s3())
	if err != nil {
		return nil, terminal.Misuse(fmt.Errorf("--segments: %w", err))
	}
	return at, nil
}

// The method "user" parses the command-line argument that names a user. The results are the user, and the text for this
// user in the output. The command-line argument is a user id of the same kind as in the audit, or "image:" with 16
// hexadecimal digits.
func (n *Names) user(ctx context.Context, p *Place, want audit.IDs, argument string) (capping.UserID, string, error) {
	if want.Dense() {
		var id UserID
		err := id.UnmarshalText([]byte(argument))
		return capping.UserID(id), argument, misuseOf(err)
	}
	if user, ok := parseImage(argument); ok {
		return user, archive.ImageName(user), nil
	}
	at, err := n.open(ctx, p)
	if err != nil {
		return 0, "", err
	}
	if at == nil {
		return 0, "",
			terminal.Misuse(fmt.Errorf("the audit has user ids of the kind %s: "+
				"the command needs the hash key of these ids from the location of the segments: "+
				"set --segments or --config",
				want.Kind))
	}
	scheme, err := keyOf(ctx, at)
	if err == nil {
		err = sameIDs(at, scheme, want)
	}
	if err != nil {
		return 0, "", terminal.WithStatus(terminal.BadInput, err)
	}
	image, err := scheme.Parse([]byte(argument))
	if err != nil {
		return 0, "", misuseOf(err)
	}
	text, err := scheme.Canonical(nil, []byte(argument))
	return capping.UserID(image), string(text), err
}

// misuseOf returns the error for an argument that is not a user id, with the exit status for wrong usage.
func misuseOf(err error) error {
	if err == nil {
		return nil
	}
	return terminal.Misuse(fmt.Errorf("<user>: %w", err))
}

// keyOf reads the kind of user ids and their key from the location of the segments. For dense ids, keyOf returns nil.
func keyOf(ctx context.Context, at objects.Source) (*ids.Scheme, error) {
	f, known, err := segments.ReadIDsFile(ctx, at)
	if err != nil || !known {
		return nil, err
	}
	return f.Scheme(), nil
}

// sameIDs returns an error unless the location of the segments and the audit have the same kind and key of user ids.
func sameIDs(at objects.Source, scheme *ids.Scheme, want audit.IDs) error {
	have := audit.IDsOf(scheme)
	if have == want {
		return nil
	}
	return fmt.Errorf("location %s has user ids of the kind %s, but the audit has user ids of the kind %s",
		at.Name(), have, want)
}

// The method "names" returns a function that converts users in audit records to user ids, for kinds of ids other than
// dense (32-bit numbers). If no location of segments is known, the returned function returns id images (64-bit hashes)
// instead of user ids.
func (n *Names) names(ctx context.Context, p *Place, want audit.IDs) (archive.Name, error) {
	at, err := n.open(ctx, p)
	if err != nil || at == nil {
		return archive.ImageName, err
	}
	g, err := liveIDs(ctx, at, want.Kind)
	if err == nil {
		err = sameIDs(at, g.Scheme, want)
	}
	if err != nil {
		return nil, terminal.WithStatus(terminal.BadInput, err)
	}
	var text []byte
	return func(user capping.UserID) string {
		text = g.Name(text[:0], user)
		return string(text)
	}, nil
}

// The method "late" works like the method "names", but reads the location of the segments only at the conversion of the
// first user. If the method "late" cannot read the location, it prints a warning and converts users to the texts of
// their id images (64-bit hashes).
func (n *Names) late(ctx context.Context, on *terminal.Streams, p *Place, want audit.IDs) archive.Name {
	var name archive.Name
	return func(user capping.UserID) string {
		if name == nil {
			var err error
			if name, err = n.names(ctx, p, want); err != nil {
				on.Warn("users are shown by the images of their ids: " + err.Error())
				name = archive.ImageName
			}
		}
		return name(user)
	}
}

// liveIDs reads the data for converting id images (64-bit hashes) to ids from the segments generation (published
// version) in use. If the ids are of the kind uint64, liveIDs reads only the key, which is sufficient for the
// conversion.
func liveIDs(ctx context.Context, at objects.Source, kind ids.Kind) (*segments.Generation, error) {
	if kind == ids.Uint64 {
		scheme, err := keyOf(ctx, at)
		return &segments.Generation{Scheme: scheme}, err
	}
	m, err := segments.ReadLiveManifest(ctx, at)
	if err != nil {
		return nil, err
	}
	return m.ReadIDs(ctx, at)
}
