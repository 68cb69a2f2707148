package wire

import (
	"fmt"
	"slices"
	"testing"
)

// Each byte of a record that looks like the one before it is looked at: whatever is changed, the
// record is read as a naive reader does, and not as what its place would make it.
func TestPredictedRecordsAreLookedAt(t *testing.T) {
	page := samplePage(2, 9)
	page.Records[1].Encrypted = true
	reversed := slices.Clone(usualOrder)
	slices.Reverse(reversed)
	for _, st := range []cborStyle{
		{encryption: true}, {open: true}, {order: reversed, encryption: true}, {untagged: true, order: []string{"Data", "ApproximateArrivalTimestamp", "EncryptionType", "SequenceNumber", "PartitionKey"}, encryption: true},
	} {
		t.Run(fmt.Sprintf("%+v", st), func(t *testing.T) {
			body := st.encode(page)
			refused := 0
			for i := range body {
				for _, b := range []byte{body[i] ^ 1, body[i] ^ 0x20, body[i] ^ 0x80, body[i] - 1, body[i] + 2, cborText | 24, cborBreak} {
					changed := slices.Clone(body)
					changed[i] = b
					want, naiveErr := naiveDecode(changed)
					var got Page
					err := Decode(CBOR, slices.Clone(changed), &got)
					if err != nil && naiveErr == nil && bounded(err) || err != nil && naiveErr != nil {
						refused++
						continue
					}
					if (err == nil) != (naiveErr == nil) {
						t.Fatalf("byte %d is %#x: %v, the naive reader says %v", i, b, err, naiveErr)
					}
					if d := differ(&got, want, equalTime); d != "" {
						t.Fatalf("byte %d is %#x: %s", i, b, d)
					}
				}
			}
			if refused == 0 || refused == 7*len(body) {
				t.Errorf("%d of %d were refused", refused, 7*len(body))
			}
		})
	}
}
