package dynamostore

import (
	"errors"
	"testing"

	"github.com/weir-go/weir/lease"
)

func TestANewerFormatIsRefused(t *testing.T) {
	for format, newer := range map[uint64]bool{0: false, lease.Format: false, lease.Format + 1: true} {
		it := item{attrRow: text(leaderRowKey), attrTerm: number(3)}
		putNumber(it, attrFormat, format)
		if l, err := decodeLeader(it); newer != errors.Is(err, lease.ErrFormat) || !newer && (err != nil || l.term != 3) {
			t.Errorf("format %d: %+v, %v", format, l, err)
		}
	}
}
