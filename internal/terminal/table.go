package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Align is the alignment of the cells in a table.
type Align bool

// Left and Right are the alignments of table cells. Cells with texts are usually aligned to the left, and cells with
// numbers to the right.
const (
	Left  Align = false
	Right Align = true
)

// Table writes rows of cells in aligned columns, without trailing blanks. Table escapes control characters in the
// cells, so a message id with line breaks stays in its cell.
func Table(to io.Writer, align Align, rows ...[]any) error {
	var columns strings.Builder
	var flags uint
	if align == Right {
		flags = tabwriter.AlignRight
	}
	w := tabwriter.NewWriter(&columns, 0, 0, 2, ' ', flags)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, Escape(fmt.Sprint(cell)))
		}
		if align == Right { // tabwriter aligns only cells that end with a tab
			fmt.Fprint(w, "\t")
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(columns.String()) {
		if _, err := fmt.Fprintln(to, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// JSON writes the report of a command as JSON, for other programs.
func JSON(to io.Writer, report any) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}
