package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/lease"
)

// expiredAtOnce is the maximum number of expired chunks that are removed after a new chunk was
// written. It is more than one, so that chunks of ended sessions are removed too.
const expiredAtOnce = 5

// historyRow returns the sort key of a chunk. Chunks are sorted by minute, so expired chunks come
// first.
func historyRow(since int64, session string) string {
	return fmt.Sprintf("%s%010d/%s", historyPrefix, since, session)
}

func decodeHistory(it item) (lease.HistoryChunk, error) {
	r := reader{it: it}
	minute, session, found := strings.Cut(strings.TrimPrefix(r.text(attrRow), historyPrefix), "/")
	since, err := strconv.ParseInt(minute, 10, 64)
	c := lease.HistoryChunk{Session: session, Since: since}
	switch data := it[attrData].(type) {
	case *types.AttributeValueMemberB:
		c.Data = data.Value
	default:
		r.fail(attrData, errors.New("it is not binary"))
	}
	if err != nil || !found || r.text(attrRow) != historyRow(since, session) {
		r.fail(attrRow, errors.New("the sort key is not history/MINUTE/SESSION"))
	}
	r.fail(attrData, c.Check())
	return c, r.done()
}

// PutHistory implements [lease.Historian]. It makes one write. The first write of a chunk is
// followed by a read, and by the deletion of up to 5 expired chunks.
func (s *Store) PutHistory(ctx context.Context, app string, c lease.HistoryChunk) error {
	if err := c.Check(); err != nil {
		return err
	}
	ctx, cancel, err := s.begin(ctx, app)
	if err != nil {
		return err
	}
	defer cancel()
	it := newChange(app, historyRow(c.Since, c.Session)).key()
	it[attrData] = &types.AttributeValueMemberB{Value: c.Data}
	out, err := call(ctx, s, "put history of session "+c.Session, &dynamodb.PutItemInput{
		TableName: &s.table, Item: it, ReturnValues: types.ReturnValueAllOld,
	}, s.client.PutItem)
	if err != nil || len(out.Attributes) > 0 {
		return err
	}
	return s.expireHistory(ctx, app, c.Expired())
}

// expireHistory removes up to expiredAtOnce chunks that began before the given minute.
func (s *Store) expireHistory(ctx context.Context, app string, before int64) error {
	expired, err := s.historyBetween(ctx, app, historyRow(0, ""), historyRow(before, ""), expiredAtOnce)
	if err != nil {
		return err
	}
	return parallel(len(expired), func(i int) error {
		r := reader{it: expired[i]}
		row := r.text(attrRow)
		if r.err != nil {
			return r.done()
		}
		_, err := s.delete(ctx, "remove "+row, newChange(app, row))
		return err
	})
}

// History implements [lease.Historian]. It costs half a read unit per 4 KB.
func (s *Store) History(ctx context.Context, app string, since int64) ([]lease.HistoryChunk, error) {
	ctx, cancel, err := s.begin(ctx, app)
	if err != nil {
		return nil, err
	}
	defer cancel()
	items, err := s.historyBetween(ctx, app, historyRow(max(since, 0), ""), historyPrefix+"~", 0)
	if err != nil {
		return nil, err
	}
	chunks := make([]lease.HistoryChunk, 0, len(items))
	for _, it := range items {
		if c, err := decodeHistory(it); err == nil {
			chunks = append(chunks, c)
		}
	}
	return chunks, nil
}

// historyBetween reads the rows between two sort keys. most is the maximum number of rows, or 0 for
// all rows.
func (s *Store) historyBetween(ctx context.Context, app, from, to string, most int32) ([]item, error) {
	in := &dynamodb.QueryInput{
		TableName:                 &s.table,
		KeyConditionExpression:    aws.String("#app = :app AND #row BETWEEN :from AND :to"),
		ExpressionAttributeNames:  map[string]string{"#app": attrApp, "#row": attrRow},
		ExpressionAttributeValues: item{":app": text(app), ":from": text(from), ":to": text(to)},
	}
	if most > 0 {
		in.Limit = &most
	}
	var all []item
	for {
		out, err := call(ctx, s, "read the history", in, s.client.Query)
		if err != nil {
			return nil, err
		}
		all = append(all, out.Items...)
		if len(out.LastEvaluatedKey) == 0 || most > 0 {
			return all, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}
