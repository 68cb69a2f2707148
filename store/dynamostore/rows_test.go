package dynamostore

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func part(t testing.TB, s string) shard.Position {
	t.Helper()
	p, err := shard.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLeaseRowsComeBackAsTheyWere(t *testing.T) {
	for _, l := range []lease.Lease{
		{Key: lease.Key{Stream: "orders", Shard: "shardId-000000000000"}, Epoch: 1, Position: shard.Oldest},
		{Key: lease.Key{Stream: "a/b%2F", Shard: "c/d"}, Epoch: math.MaxUint64, Owner: "o", Heir: "h", Last: "o",
			Parents: []string{"1", "2"}, Range: shard.HashRange{Start: shard.HashKey{Lo: 1}, End: shard.MaxHashKey},
			Position: part(t, strings.Repeat("9", 129)+"+7")},
		{Key: lease.Key{}, Revoked: "r", Shunned: "x", Deaths: "1/0/0/0/7/", Load: lease.MaxLoad, Born: math.MaxInt64, Position: shard.End},
		{Key: lease.Key{Shard: "x"}, Position: shard.At(time.UnixMilli(-1))},
		{Key: lease.Key{Stream: "ü"}, Position: shard.Latest},
		{Key: lease.Key{Stream: "no position"}},
	} {
		got, err := decodeLease(encodeLease("app", l))
		if err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		if !reflect.DeepEqual(got, l) {
			t.Errorf("\n got %+v\nwant %+v", got, l)
		}
	}
}

func TestNoTwoLeasesShareARow(t *testing.T) {
	seen := map[string]lease.Key{}
	for _, stream := range []string{"", "a", "a/", "a/b", "a%2Fb", "a%", "%", "a%252Fb", "/"} {
		for _, id := range []string{"", "b", "/b", "b/c", "%2Fb"} {
			k := lease.Key{Stream: stream, Shard: id}
			row := leaseRow(k)
			if other, dup := seen[row]; dup {
				t.Errorf("%q and %q share the row %q", k, other, row)
			}
			seen[row] = k
			if back, err := parseLeaseRow(row); err != nil || back != k {
				t.Errorf("%q came back as %q, %v", k, back, err)
			}
		}
	}
}

func TestBadRowsAreNamed(t *testing.T) {
	good := func() item {
		return encodeLease("billing", lease.Lease{Key: lease.Key{Stream: "orders", Shard: "7"}, Epoch: 3, Position: shard.Oldest})
	}
	list := func(vs ...types.AttributeValue) types.AttributeValue { return &types.AttributeValueMemberL{Value: vs} }
	n := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	for _, c := range []struct {
		name string
		attr string
		to   types.AttributeValue
	}{
		{"an epoch that is missing", attrEpoch, nil},
		{"an epoch that is text", attrEpoch, text("3")},
		{"an epoch that is negative", attrEpoch, n("-1")},
		{"an epoch that is a fraction", attrEpoch, n("1.5")},
		{"an epoch beyond 64 bits", attrEpoch, n("18446744073709551616")},
		{"an owner that is a number", attrOwner, n("1")},
		{"an invalid position", attrPosition, text("yesterday")},
		{"a position that was changed without its key", attrPosition, text("123")},
		{"a key of a position that is missing", attrPositionKey, nil},
		{"parents that are text", attrParents, text("1")},
		{"parents that are numbers", attrParents, list(n("1"))},
		{"a load beyond the scale", attrLoad, n("81")},
		{"a birth beyond 63 bits", attrBorn, n("9223372036854775808")},
		{"a range that is missing", attrRangeEnd, nil},
		{"a range that ends before it starts", attrRangeStart, text("9")},
	} {
		t.Run(c.name, func(t *testing.T) {
			it := good()
			if c.to == nil {
				delete(it, c.attr)
			} else {
				it[c.attr] = c.to
			}
			_, err := decodeLease(it)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), `"lease/orders/7"`) || !strings.Contains(err.Error(), `"billing"`) {
				t.Errorf("the row is not named: %v", err)
			}
		})
	}
}

func TestWorkerRows(t *testing.T) {
	row := func(change func(item)) item {
		it := item{attrApp: text("billing"), attrRow: text(workerRowKey("s-1")), attrBeat: number(5)}
		change(it)
		return it
	}
	n := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

	got, err := decodeWorker(row(func(it item) {
		it[attrName], it[attrEnded], it[attrLeaving], it[attrWeight] = text("w"), yes(), yes(), text("2.5")
		it[attrTimes] = text("1s/5s/30s")
		it[attrDrain], it[attrTroubles] = yes(), text(`[{"Stream":"s","Shard":"1","State":"stalled","For":1000000000,"Why":"w"}]`)
		it[attrMaxLeases], it[attrHolds], it[attrTold], it[attrFreed], it[attrUnsettled] =
			n("7"), n("18446744073709551615"), n("3"), n("4"), yes()
	}))
	want := workerRow{Worker: lease.Worker{Session: "s-1", Name: "w", Heartbeats: 5, Ended: true, Leaving: true, Weight: 2.5, MaxLeases: 7,
		Holds: math.MaxUint64, Drain: true, Times: lease.DefaultTimes, Troubles: []lease.Trouble{{Key: lease.Key{Stream: "s", Shard: "1"}, State: "stalled", For: time.Second, Why: "w"}}}, told: 3, freed: 4, unsettled: true}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := decodeWorker(row(func(item) {})); err != nil || got.Weight != 1 || got.Times != (lease.Times{}) {
		t.Errorf("a plain row is %+v, %v", got, err)
	}

	for name, change := range map[string]func(item){
		"no beat":                       func(it item) { delete(it, attrBeat) },
		"no session":                    func(it item) { it[attrRow] = text(workerPrefix) },
		"a weight of nothing":           func(it item) { it[attrWeight] = text("0") },
		"a weight of text":              func(it item) { it[attrWeight] = text("heavy") },
		"an infinite weight":            func(it item) { it[attrWeight] = text("+Inf") },
		"a weight that is not a number": func(it item) { it[attrWeight] = text("NaN") },
		"a huge cap":                    func(it item) { it[attrMaxLeases] = n("9223372036854775808") },
		"troubles of text":              func(it item) { it[attrTroubles] = text("many") },
		"times out of bounds":           func(it item) { it[attrTimes] = text("1s/0s/30s") },
		"a number of times":             func(it item) { it[attrTimes] = n("5") },
		"a flag that is text":           func(it item) { it[attrEnded] = text("true") },
	} {
		if w, err := decodeWorker(row(change)); err == nil {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

// FuzzRows reads rows that another program may have written.
func FuzzRows(f *testing.F) {
	f.Add("lease/orders/1", "3", "oldest", "2", "0", "9", "w", "1")
	f.Add("group/worker/s", "1", "123+4", "4:003:123:0000000004", "5", "1", "", "0.5")
	f.Add("group/leader", "", "", "", "", "", "", "")
	f.Fuzz(func(t *testing.T, row, n, position, key, start, end, owner, weight string) {
		it := item{
			attrApp: text("app"), attrRow: text(row), attrEpoch: &types.AttributeValueMemberN{Value: n},
			attrPosition: text(position), attrPositionKey: text(key), attrRangeStart: text(start), attrRangeEnd: text(end),
			attrOwner: text(owner), attrBeat: &types.AttributeValueMemberN{Value: n},
			attrHolds: &types.AttributeValueMemberN{Value: n}, attrWeight: text(weight),
			attrTerm: &types.AttributeValueMemberN{Value: n},
		}
		if l, err := decodeLease(it); err == nil {
			again, err := decodeLease(encodeLease("app", l))
			if err != nil || !reflect.DeepEqual(again, l) {
				t.Errorf("%+v came back as %+v, %v", l, again, err)
			}
			if leaseRow(l.Key) != row {
				t.Errorf("row %q is read as that of %q", row, l.Key)
			}
		}
		if w, err := decodeWorker(it); err == nil && (!(w.Weight > 0) || w.MaxLeases < 0 || workerRowKey(w.Session) != row) {
			t.Errorf("worker %+v", w)
		}
		if _, err := decodeGroup([]item{it}); err == nil {
			return
		}
	})
}
