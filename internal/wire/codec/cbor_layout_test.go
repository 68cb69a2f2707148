package codec_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
)

// A predicted record is checked byte by byte. If a byte of the record changes, the result equals
// that of a naive reader.
func TestPredictedRecordsAreLookedAt(t *testing.T) {
	page := answers.Sample(2, 9)
	page.Records[1].Encrypted = true
	reversed := slices.Clone(answers.UsualOrder)
	slices.Reverse(reversed)
	for _, st := range []answers.CBOR{
		{Encryption: true}, {Open: true}, {Order: reversed, Encryption: true}, {Untagged: true, Order: []string{"Data", "ApproximateArrivalTimestamp", "EncryptionType", "SequenceNumber", "PartitionKey"}, Encryption: true},
	} {
		t.Run(fmt.Sprintf("%+v", st), func(t *testing.T) {
			body := st.Encode(page)
			refused := 0
			for i := range body {
				for _, b := range []byte{body[i] ^ 1, body[i] ^ 0x20, body[i] ^ 0x80, body[i] - 1, body[i] + 2, 0x78, 0xff} {
					changed := slices.Clone(body)
					changed[i] = b
					want, naiveErr := answers.NaiveDecode(changed)
					var got codec.Page
					err := codec.Decode(codec.CBOR, slices.Clone(changed), &got)
					if err != nil && naiveErr == nil && answers.Bounded(err) || err != nil && naiveErr != nil {
						refused++
						continue
					}
					if (err == nil) != (naiveErr == nil) {
						t.Fatalf("byte %d is %#x: %v, the naive reader says %v", i, b, err, naiveErr)
					}
					if d := answers.Differ(&got, want, answers.EqualTime); d != "" {
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
