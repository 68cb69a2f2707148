package cli

import (
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Column is a column of a [Table].
type Column struct {
	Head string
	// Least is the number of characters to which cells may be cut if the table is wider than the
	// screen. 0 means that they are never cut.
	Least int
	// Keep is the part that remains of a cell that is cut.
	Keep Part
}

// Part is a part of a cell.
type Part uint8

const (
	KeepStart Part = iota // for names and lists
	KeepEnds              // for names whose end matters, such as those of pods
	KeepEnd               // for numbers whose last digits differ
)

// Table is a table for users. Columns are cut in the order of Cut if the screen is too narrow.
type Table struct {
	Columns []Column
	// Cut contains the indexes of the columns that may be cut, the first to cut first.
	Cut  []int
	rows [][]string
}

// Add adds a row. It applies Visible to each cell.
func (t *Table) Add(cells ...string) {
	row := make([]string, len(t.Columns))
	for i := range cells {
		row[i] = Visible(cells[i])
	}
	t.rows = append(t.rows, row)
}

const gap = "  "

// Text returns the table. It has at most the given number of columns, if cells can be cut that far.
// 0 means that no cell is cut.
func (t *Table) Text(columns int) string {
	widths, total := make([]int, len(t.Columns)), -len(gap)
	for i, c := range t.Columns {
		widths[i] = utf8.RuneCountInString(c.Head)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
		total += widths[i] + len(gap)
	}
	if columns > 0 {
		for _, i := range t.Cut {
			least := max(t.Columns[i].Least, utf8.RuneCountInString(t.Columns[i].Head))
			if less := min(total-columns, widths[i]-least); less > 0 {
				widths[i] -= less
				total -= less
			}
		}
	}
	var b strings.Builder
	line := func(cells func(int) string) {
		var text strings.Builder
		for i := range t.Columns {
			cell := part(cells(i), widths[i], t.Columns[i].Keep)
			text.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)) + gap)
		}
		b.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
	line(func(i int) string { return t.Columns[i].Head })
	for _, row := range t.rows {
		line(func(i int) string { return row[i] })
	}
	return b.String()
}

// part cuts a cell to a width of at least 2.
func part(cell string, width int, keep Part) string {
	all := []rune(cell)
	if len(all) <= width {
		return cell
	}
	switch first := (width - 1) / 2; keep {
	case KeepEnd:
		return "…" + string(all[len(all)-width+1:])
	case KeepEnds:
		return string(all[:first]) + "…" + string(all[len(all)-(width-1-first):])
	}
	return string(all[:width-1]) + "…"
}

// Columns returns the width of the screen for tables: that of the terminal, or else that of the
// environment variable COLUMNS, or else 0 for no limit, so that the output for a file or another
// program is complete.
func (t Terminal) Columns() int {
	if t.width > 0 {
		return t.width
	}
	if f, ok := t.Out.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	if width, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 {
		return width
	}
	return 0
}

// proseColumns is the width of sentences, which fit any terminal and can be pasted anywhere.
const proseColumns = 80

// Prose returns the width for sentences: 80 columns, or fewer on a narrow screen.
func (t Terminal) Prose() int {
	if columns := t.Columns(); columns > 0 {
		return min(max(columns, 40), proseColumns)
	}
	return proseColumns
}

// Unbroken is a width for paragraphs that are not wrapped.
const Unbroken = 1 << 30

// Findings returns the width for lists that other programs may search line by line. It is that of
// sentences on a screen, and otherwise [Unbroken].
func (t Terminal) Findings() int {
	if t.Columns() == 0 {
		return Unbroken
	}
	return t.Prose()
}

// Wrapped wraps a paragraph to lines that end with a line feed. The lines after the first begin
// with indent. It applies Visible to the text.
func Wrapped(text, indent string, columns int) string {
	lines := Lines(Visible(text), columns-len(indent))
	return strings.Join(lines, "\n"+indent) + "\n"
}
