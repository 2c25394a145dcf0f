package delimited

import "fmt"

// layout is where the columns of a delimited file are.
type layout struct {
	dialect
	id      int // index of the id's column
	segment int // index of the segment's column, -1 when the file is no table
	columns int // in every row
	header  bool
}

// layout finds the columns by the first row.
func (o *Options) layout(first []string, d dialect) (*layout, error) {
	if o.Kind == Text && o.Table {
		return nil, fmt.Errorf("a table needs two columns: say --format csv or tsv if this is one")
	}
	shape := &layout{dialect: d, segment: -1, columns: len(first)}
	shape.header = o.hasHeader(first)
	var err error
	if shape.id, err = findColumn(o.IDColumn, "user_id", first, shape.header, likelyID); err != nil {
		return nil, err
	}
	if !o.Table {
		return shape, nil
	}
	if shape.segment, err = findColumn(o.SegmentColumn, "segment", first, shape.header,
		otherThan(shape.id)); err != nil {
		return nil, err
	}
	if shape.segment == shape.id {
		return nil, fmt.Errorf("column %d is both the id's and the segment's", shape.id+1)
	}
	return shape, nil
}
