package cli

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTable(t *testing.T) {
	t.Parallel()
	table := Table{
		Columns: []Column{{Head: "WORKER", Least: 9, Keep: KeepEnds}, {Head: "STATE"}, {Head: "STREAMS", Least: 5}, {Head: "AT", Least: 6, Keep: KeepEnd}},
		Cut:     []int{3, 0, 2},
	}
	table.Add("billing-7d9f8b6c5-x2x8z", "alive", "orders, flights", "49680638571557643909")
	table.Add("a", "ended", "\x1b[31m", "oldest")
	for columns, want := range map[int]string{
		0: `
WORKER                   STATE  STREAMS          AT
billing-7d9f8b6c5-x2x8z  alive  orders, flights  49680638571557643909
a                        ended  \x1b[31m         oldest
`,
		60: "",
		50: "",
		30: `
WORKER     STATE  STREAMS  AT
bill…2x8z  alive  orders…  …43909
a          ended  \x1b[3…  oldest
`,
		10: `
WORKER     STATE  STREAMS  AT
bill…2x8z  alive  orders…  …43909
`,
	} {
		got := table.Text(columns)
		switch columns {
		case 0, 30:
			if got != want[1:] {
				t.Errorf("%d columns:\n%s\nwant\n%s", columns, got, want)
			}
		case 10:
			if !strings.HasPrefix(got, want[1:]) {
				t.Errorf("%d columns:\n%s\nwant\n%s", columns, got, want)
			}
		default:
			for line := range strings.Lines(got) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
					t.Errorf("%d columns: a line of %d: %s", columns, n, line)
				}
			}
		}
	}
	empty := Table{Columns: []Column{{Head: "A"}}}
	if got := empty.Text(80); got != "A\n" {
		t.Errorf("an empty table is %q", got)
	}
}

func TestWrapped(t *testing.T) {
	t.Parallel()
	if got, want := Wrapped("one two three\x1b four", "  ", 12), "one two\n  three\\x1b\n  four\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
