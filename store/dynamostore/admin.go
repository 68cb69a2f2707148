package dynamostore

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

const scanning = "list the applications"

// Apps implements [lease.Admin]. It scans the whole table in pages of 1 MB, at one read unit per 4
// KB. Apps needs the permission dynamodb:Scan in addition to [Policy]. A running application never
// calls Apps.
func (s *Store) Apps(ctx context.Context) ([]string, error) {
	ctx, cancel, err := s.begin(ctx, "any")
	if err != nil {
		return nil, err
	}
	defer cancel()
	in := &dynamodb.ScanInput{
		TableName: &s.table, ProjectionExpression: aws.String("#app"), ConsistentRead: aws.Bool(true),
		// An application that has only history rows is not listed. An older version of weir, which
		// does not know history, may have removed the other rows.
		FilterExpression:          aws.String("NOT begins_with(#row, :history)"),
		ExpressionAttributeNames:  map[string]string{"#app": attrApp, "#row": attrRow},
		ExpressionAttributeValues: item{":history": text(historyPrefix)},
	}
	var apps []string
	for {
		out, err := call(ctx, s, scanning, in, s.client.Scan)
		if err != nil {
			return nil, err
		}
		for _, it := range out.Items {
			r := reader{it: it}
			if app := r.text(attrApp); r.err == nil && (len(apps) == 0 || apps[len(apps)-1] != app) {
				apps = append(apps, app) // the rows of an application are adjacent
			}
		}
		if len(out.LastEvaluatedKey) == 0 {
			slices.Sort(apps)
			return slices.Compact(apps), nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// Remove implements [lease.Admin]. It deletes row by row. Sessions are deleted first, so that no
// worker continues with the remaining rows. After an error some rows may remain; repeat the call.
func (s *Store) Remove(ctx context.Context, app string) error {
	ctx, cancel, err := s.begin(ctx, app)
	if err != nil {
		return err
	}
	defer cancel()
	defer s.forgetApp(app)
	for _, prefix := range [...]string{workerPrefix, leasePrefix, groupPrefix, historyPrefix} {
		for try := 0; ; try++ {
			items, err := s.query(ctx, "read the rows of application "+app, app, prefix, "")
			if err != nil {
				return err
			}
			if len(items) == 0 {
				break
			}
			if try == maxTries {
				return fmt.Errorf("dynamostore: application %s is still in use while it is removed: stop its workers first", app)
			}
			err = parallel(len(items), func(i int) error {
				r := reader{it: items[i]}
				row := r.text(attrRow)
				if r.err != nil {
					return r.done()
				}
				_, err := s.delete(ctx, "remove "+row, newChange(app, row))
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetApp drops the cached state of an application.
func (s *Store) forgetApp(app string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.orders {
		if k.app == app {
			delete(s.orders, k)
		}
	}
	for k := range s.news {
		if k.app == app {
			delete(s.news, k)
		}
	}
	delete(s.doubt, app)
}
