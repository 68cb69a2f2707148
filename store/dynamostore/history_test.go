package dynamostore

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// FuzzHistory reads rows of history that another program may have written.
func FuzzHistory(f *testing.F) {
	f.Add("history/0029000000/s", uint8(0), []byte{1})
	f.Add("history/29000000/s", uint8(0), []byte{1})
	f.Add("history/-000000001/s", uint8(0), []byte{1})
	f.Add("history/0029000000/", uint8(0), []byte{1})
	f.Add("lease/0029000000/s", uint8(1), []byte{})
	f.Fuzz(func(t *testing.T, row string, kind uint8, data []byte) {
		it := item{attrApp: text("app"), attrRow: text(row)}
		it[attrData] = []types.AttributeValue{
			&types.AttributeValueMemberB{Value: data}, text(string(data)), number(7), yes(), nil,
		}[kind%5]
		c, err := decodeHistory(it)
		if err == nil && (c.Check() != nil || historyRow(c.Since, c.Session) != row || kind%5 != 0) {
			t.Errorf("row %q of kind %d is read as minute %d of %q", row, kind, c.Since, c.Session)
		}
	})
}

func TestExpiredChunksComeFirst(t *testing.T) {
	t.Parallel()
	rows := []string{historyRow(0, ""), historyRow(99, "z"), historyRow(100, ""), historyRow(100, "a"), historyRow(1_000_000_000, "a"), historyPrefix + "~"}
	for i := range rows[1:] {
		if rows[i] >= rows[i+1] {
			t.Errorf("%q comes after %q", rows[i], rows[i+1])
		}
	}
}
