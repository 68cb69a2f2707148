package judge

import (
	"strings"
	"testing"
)

// Puts reports each broken promise of a producer. It reports nothing for a correct run.
func TestPuts(t *testing.T) {
	first, second := ID{"k", 1}, ID{"k", 2}
	a, b := Place{"s", "1", 0}, Place{"s", "2", 0}
	for name, c := range map[string]struct {
		do   func(*Puts)
		want string // "" if nothing is wrong
	}{
		"all is well": {func(p *Puts) {
			p.Stored(first, a, true)
			p.Stored(first, b, false)
			p.Confirmed(first, one, a, true)
			p.Failed(second, one, false)
			p.Handled(first, true)
			p.End()
		}, ""},
		"a copy after a failure that says so": {func(p *Puts) {
			p.Failed(first, one, true)
			p.Stored(first, a, true)
			p.End()
		}, ""},
		"nobody accepted it": {func(p *Puts) {
			p.Stored(ID{"k", 3}, a, true)
		}, "which no producer accepted"},
		"confirmed, and not stored": {func(p *Puts) {
			p.Confirmed(first, one, Place{}, false)
		}, "its copies are []"},
		"stored after it failed": {func(p *Puts) {
			p.Failed(first, one, false)
			p.Stored(first, a, true)
		}, "certainly not stored"},
		"stored before it failed": {func(p *Puts) {
			p.Stored(first, a, true)
			p.Failed(first, one, false)
		}, "certainly not stored"},
		"two outcomes": {func(p *Puts) {
			p.Failed(first, one, false)
			p.Failed(first, one, false)
		}, "a second outcome"},
		"confirmed in a shard of other keys": {func(p *Puts) {
			p.Stored(first, a, false)
			p.Confirmed(first, one, a, true)
		}, "the KCL drops it"},
		"stored again": {func(p *Puts) {
			p.Stored(first, a, true)
			p.Confirmed(first, one, a, false)
			p.Stored(first, b, true)
		}, "as stored once"},
		"confirmed out of order": {func(p *Puts) {
			p.Stored(second, a, true)
			p.Confirmed(second, one, a, false)
			p.Stored(first, b, true)
			p.Confirmed(first, one, b, false)
		}, "confirmed after record 2"},
		"handled out of order": {func(p *Puts) {
			p.Stored(first, a, true)
			p.Stored(second, b, true)
			p.Confirmed(first, one, a, false)
			p.Confirmed(second, one, b, false)
			p.Handled(second, true)
			p.Handled(first, true)
			p.End()
		}, "handled before record 1"},
		"confirmed, and not handled": {func(p *Puts) {
			p.Stored(first, a, true)
			p.Confirmed(first, one, a, false)
			p.Handled(first, false)
			p.End()
		}, "no handler got it"},
		"dropped, and not handled elsewhere": {func(p *Puts) {
			p.Stored(first, a, true)
			p.Confirmed(first, one, a, false)
			p.Repeat(first)
			p.End()
		}, "no handler got it"},
		"dropped, and handled elsewhere": {func(p *Puts) {
			p.Stored(first, a, true)
			p.Confirmed(first, one, a, false)
			p.Handled(first, false)
			p.Repeat(first)
			p.End()
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPuts()
			p.Accepted(p.Next("k"), one, true)
			p.Accepted(p.Next("k"), one, true)
			if p.Open(one) != 2 {
				t.Errorf("%d records are open", p.Open(one))
			}
			c.do(p)
			if got := p.Wrong(); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
