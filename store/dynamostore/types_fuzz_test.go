package dynamostore

import (
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// FuzzAttributeTypes changes the types of attributes of a lease, a session and the leader. The
// result is an error, or a value that can be stored again.
func FuzzAttributeTypes(f *testing.F) {
	f.Add(uint8(0), uint8(0), "")
	f.Add(uint8(3), uint8(1), "17")
	f.Add(uint8(5), uint8(2), "-1e400")
	f.Add(uint8(7), uint8(7), "x")
	names := []string{
		attrApp, attrRow, attrEpoch, attrPosition, attrPositionKey, attrRangeStart, attrRangeEnd, attrOwner, attrBeat, attrHolds, attrWeight, attrTerm,
		attrTroubles, attrMaxLeases, attrEnded, attrLeaving, attrDrain, attrTold, attrFreed, attrUnsettled, attrName, attrTimes,
		attrHeir, attrRevoked, attrLast, attrShunned, attrLoad, attrBorn, attrParents, attrSession, attrChanges, attrToken, attrPaused,
	}
	f.Fuzz(func(t *testing.T, which, kind uint8, value string) {
		for _, row := range []string{"lease/orders/1", "group/worker/s", leaderRowKey} {
			it := item{
				attrApp: text("app"), attrRow: text(row), attrEpoch: number(3), attrPosition: text("oldest"), attrPositionKey: text("2"),
				attrRangeStart: text("0"), attrRangeEnd: text("9"), attrBeat: number(4), attrTerm: number(5),
			}
			name := names[int(which)%len(names)]
			it[name] = []types.AttributeValue{
				&types.AttributeValueMemberS{Value: value}, &types.AttributeValueMemberN{Value: value}, &types.AttributeValueMemberB{Value: []byte(value)},
				&types.AttributeValueMemberBOOL{Value: value != ""}, &types.AttributeValueMemberNULL{Value: true},
				&types.AttributeValueMemberL{Value: []types.AttributeValue{text(value)}}, &types.AttributeValueMemberM{Value: item{value: text(value)}},
				&types.AttributeValueMemberSS{Value: []string{value, value}}, nil,
			}[kind%9]
			if l, err := decodeLease(it); err == nil {
				if again, err := decodeLease(encodeLease("app", l)); err != nil || !reflect.DeepEqual(again, l) {
					t.Errorf("%+v came back as %+v, %v", l, again, err)
				}
			}
			if w, err := decodeWorker(it); err == nil && (!(w.Weight > 0) || w.MaxLeases < 0 || workerRowKey(w.Session) != row && name != attrRow) {
				t.Errorf("worker %+v", w)
			}
			_, _ = decodeLeader(it)
			_, _ = decodeGroup([]item{it, it})
		}
	})
}
