package failure

import "testing"

// TestWhereANamedRecordStands places records in a call with the records 2 to 5 of a batch of eight.
func TestWhereANamedRecordStands(t *testing.T) {
	const begun, limit = 2, 6
	for _, c := range []struct {
		what        string
		named, done int
		want        Placing
	}{
		{"it was done before the call", 1, 2, NamedOther},
		{"it is the first of the call", 2, 2, NamedHere},
		{"it is the last of the call", 5, 2, NamedHere},
		{"it is of a later part", 6, 2, NamedOther},
		{"what is before it was noted, too", 4, 4, NamedHere},
		{"it was noted as done during the call", 3, 4, NamedDone},
		{"all of the call was noted as done", 5, 6, NamedDone},
		{"more than the call was about is done", 3, 8, NamedDone},
	} {
		if got := Place(c.named, begun, c.done, limit); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
