package model

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"
)

// A record goes to the shard of its explicit hash key, or otherwise of the MD5 of its key. Each
// record of an aggregate is returned.
func TestPutRecords(t *testing.T) {
	s := New()
	st := s.Create("s", 2, start)
	// The MD5 of "a" is 0cc1…, that of "b" 92eb….
	container := Pack("b", []Payload{{Data: []byte("one")}, {Data: []byte("two")}}, nil)
	body := fmt.Sprintf(`{"StreamName":"s","Records":[
		{"Data":"eA==","PartitionKey":"a"},
		{"Data":"eQ==","PartitionKey":"b"},
		{"Data":"eg==","PartitionKey":"b","ExplicitHashKey":"0"},
		{"Data":%q,"PartitionKey":"a"}]}`, base64.StdEncoding.EncodeToString(container))
	c, err := Read("Kinesis_20131202.PutRecords", "application/x-amz-json-1.1", []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	whim := func(i int) PutWhim { return PutWhim{} }
	a, stored := s.PutRecords(c, whim, 0, start)
	var got []string
	for _, one := range stored {
		for _, u := range one.Users {
			shard := one.Shard.ID[len(one.Shard.ID)-1:]
			got = append(got, fmt.Sprintf("%s %s %s %v", shard, u.Key, u.Data, u.Owned))
		}
	}
	want := "[0 a x true 1 b y true 0 b z true 0 b one false 0 b two false]"
	if fmt.Sprint(got) != want || len(st.Shards[0].Records) != 3 {
		t.Errorf("stored %v, want %s", got, want)
	}
	var out struct{ Records []putResult }
	if err := json.Unmarshal(a.Body, &out); err != nil || len(out.Records) != 4 ||
		out.Records[0].SequenceNumber != Number(stored[0].Record.Seq) {
		t.Errorf("%s, %v", a.Body, err)
	}

	binary := head(text(text(head(nil, 5, 2), "StreamName"), "s"), 3, 7)
	binary = head(append(binary, "Records"...), 4, 1)
	binary = text(text(head(binary, 5, 2), "PartitionKey"), "b")
	binary = append(head(text(binary, "Data"), 2, 2), "cb"...)
	c, err = Read("Kinesis_20131202.PutRecords", "application/x-amz-cbor-1.1", binary)
	if err != nil || fmt.Sprintf("%s %q", c.Stream, c.Puts) != `s [{"cb" "b" ""}]` {
		t.Errorf("%+v, %v", c, err)
	}
	if a, _ := s.PutRecords(c, whim, 0, start); !a.CBOR {
		t.Errorf("a call in CBOR is answered with %q", a.Body)
	}
	c, err = Read("Kinesis_20131202.PutRecords", "application/x-amz-json-1.1", []byte(body))
	if err != nil {
		t.Fatal(err)
	}

	// The first entry is refused. The second is refused but stored. The result of the third is
	// blank. The fourth is stored, but its result is missing.
	how := []PutWhim{{Code: "A"}, {Code: "B", Kept: true}, {Blank: true}, {}}
	a, stored = s.PutRecords(c, func(i int) PutWhim { return how[i] }, 1, start)
	out.Records = nil
	if err := json.Unmarshal(a.Body, &out); err != nil || len(stored) != 2 ||
		fmt.Sprint(out.Records) != "[{A sim  } {B sim  } {   }]" {
		t.Errorf("%s, %d stored, %v", a.Body, len(stored), err)
	}
}
