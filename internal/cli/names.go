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

// parseImage returns the user of a text that names an image, in lower or upper case.
func parseImage(text string) (capping.UserID, bool) {
	digits, found := strings.CutPrefix(text, ids.ImagePrefix)
	image, ok := ids.ParseImage(strings.ToLower(digits))
	return capping.UserID(image), found && ok
}

// Names holds the flag for the location whose key and ids convert ids to images, and back.
type Names struct {
	Segments string `placeholder:"DIR|s3://…" help:"Location of the published segments, where the command finds the original user ids unless ids are dense. Default: segments.source in the file of --config."`
}

// open opens the location, or returns nil if no flag names one.
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

// user returns the user that an argument names, and the text for the user in the output. The argument is an id of the
// kind in the audit, or image:<16 hexadecimal digits>.
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
			terminal.Misuse(fmt.Errorf("the audit has ids of the kind %s, whose key is in the segments location: "+
				"set --segments or --config", want.Kind))
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

// misuseOf returns the error of an argument that names no user.
func misuseOf(err error) error {
	if err == nil {
		return nil
	}
	return terminal.Misuse(fmt.Errorf("<user>: %w", err))
}

// keyOf reads the kind and the key of a segments' location. The result is nil for dense ids.
func keyOf(ctx context.Context, at objects.Source) (*ids.Scheme, error) {
	f, known, err := segments.ReadIDsFile(ctx, at)
	if err != nil || !known {
		return nil, err
	}
	return f.Scheme(), nil
}

// sameIDs returns an error unless the scheme of a segments' location is that of the audit.
func sameIDs(at objects.Source, scheme *ids.Scheme, want audit.IDs) error {
	have := audit.IDsOf(scheme)
	if have == want {
		return nil
	}
	return fmt.Errorf("%s has ids of the kind %s, but the audit has ids of the kind %s", at.Name(), have, want)
}

// names returns the texts for users of an archive whose ids are not dense. Without a location these are images.
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

// late does the same as names, but reads the location only when it names the first user. If the location cannot be
// read, late reports the error and names users by their images.
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

// liveIDs reads the dictionary and the way back of the live generation. 64-bit numbers need only the key.
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
