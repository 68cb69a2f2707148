package kinesisletters

import (
	"context"
	"testing"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/deadletter/boxtest"
	"github.com/weir-go/weir/internal/proof/oldletters"
)

func TestTwoApplicationsShareAStream(t *testing.T) {
	_, s := letters(t, 2)
	boxtest.Applications(t, s, func(ctx context.Context) (items []deadletter.Item, err error) {
		for i, err := range s.Items(ctx) {
			if err != nil {
				return nil, err
			}
			items = append(items, i)
		}
		return items, nil
	})
}

func TestALetterOfAnEarlierVersionIsRead(t *testing.T) {
	server, s := letters(t, 1)
	server.Put("dead", "LH123", []byte(oldletters.Text))
	n := 0
	for i, err := range s.Items(t.Context()) {
		if n++; err != nil || i.ID != oldletters.ID || i.RecordID() != oldletters.ID || i.App != oldletters.App || string(i.Data) != "record 1" {
			t.Errorf("%+v, %v", i, err)
		}
	}
	if n != 1 {
		t.Errorf("%d letters", n)
	}
}
