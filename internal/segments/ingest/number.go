package ingest

import (
	"context"
	"fmt"

	"capper/internal/bitmap"
	"capper/internal/segments"
	"capper/internal/segments/publish"
)

// If ids are not dense (32-bit integers), a build gives users their numbers after it has read all inputs. The number of
// a user is the rank of the id's image (64-bit number that stands for the id) among all images. The build therefore
// reads the inputs of all definitions before it makes the first segment or set.

// An input contains the users from the input files of one definition of a segment or set.
type input struct {
	list  *imageList
	users *bitmap.Bitmap // nil until the users have numbers
	files []FileReport
}

// readTableImages reads the tables whose rows name segments into lists of images (64-bit numbers that stand for ids).
func (b *builder) readTableImages(ctx context.Context) error {
	known := newTable(b.known())
	d := &imageLists{of: b.images, scheme: b.reader.cfg.Scheme}
	add := func() { d.lists = append(d.lists, b.images.newList()) }
	d.names = newNames(known.names.most, errTooManySegments, known.check, add)
	if err := b.reader.read(ctx, b.plan.Tables, d); err != nil {
		return err
	}
	b.rows, b.tableImages = map[string]*bitmap.Set{}, map[string]*imageList{}
	for i, name := range d.names.list {
		d.lists[i].sort()
		b.tableImages[name] = d.lists[i]
	}
	return nil
}

// readSetImages reads one table whose rows name sets. The bitmaps in the returned map are nil until the ids get user
// numbers.
func (b *builder) readSetImages(ctx context.Context, t SetTable) (map[string]*bitmap.Bitmap, error) {
	d := &imageLists{of: b.images, scheme: b.reader.cfg.Scheme}
	check := func(name string) error { return segments.CheckSetName(t.Prefix + name) }
	add := func() { d.lists = append(d.lists, b.images.newList()) }
	d.names = newNames(segments.MaxSets, errTooManySets, check, add)
	if err := b.reader.read(ctx, t.Inputs, d); err != nil {
		return nil, err
	}
	if b.setImages == nil {
		b.setImages = map[string]*imageList{}
	}
	sets := map[string]*bitmap.Bitmap{}
	for i, name := range d.names.list {
		d.lists[i].sort()
		b.setImages[t.Prefix+name], sets[t.Prefix+name] = d.lists[i], nil
	}
	return sets, nil
}

// The method "number" reads the inputs of all definitions that the build needs, and makes the candidate's dictionary of
// all ids. The method "number" also converts the users of tables and inputs to bitmaps of user numbers.
func (b *builder) number(ctx context.Context, names []string, c *publish.Candidate) error {
	b.read = map[string]input{}
	for _, r := range b.needed(names) {
		if len(r.Inputs) == 0 {
			continue
		}
		b.step("reading " + r.Name)
		before := len(b.reader.Reports())
		list := b.images.newList()
		d := &imageLists{of: b.images, scheme: b.reader.cfg.Scheme, lists: []*imageList{list}}
		if err := b.reader.read(ctx, r.Inputs, d); err != nil {
			return fmt.Errorf("%s %q: %w", b.plan.kindOf(r.Name), r.Name, err)
		}
		list.sort()
		b.read[r.Name] = input{list: list, files: b.reader.Reports()[before:]}
	}
	b.step("numbering ids")
	b.sharedCount, b.shared = b.images.back.finish()
	c.Scheme = b.reader.cfg.Scheme
	d, back, err := b.images.number(c.Scheme.Kind())
	if err != nil {
		return err
	}
	b.twins = b.images.twins.find(d)
	if b.plan.SetsAlone {
		b.odd = b.images.twins.odd
	}
	c.Dictionary, c.Back = d, back
	for name, list := range b.tableImages {
		set := new(bitmap.Set)
		set.AddBitmap(list.numbered(d))
		b.rows[name] = set
	}
	for name, list := range b.setImages {
		b.named[name] = list.numbered(d)
	}
	for name, of := range b.read {
		of.users = of.list.numbered(d)
		b.read[name] = of
	}
	b.tableImages, b.setImages, b.images.lists = nil, nil, nil
	return nil
}

// The method "needed" returns the definitions of segments and sets that a build must make. In the returned list, each
// definition comes after the definitions to which it refers.
func (b *builder) needed(names []string) (list []*Definition) {
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		r := b.byName[name]
		for _, ref := range r.refs() {
			visit(ref)
		}
		list = append(list, r)
	}
	for _, name := range names {
		visit(name)
	}
	for _, r := range b.plan.published() {
		visit(r.Name)
	}
	return list
}
