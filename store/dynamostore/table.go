package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/lease"
)

// readyWithin limits how long Migrate waits if its context has no deadline. DynamoDB takes
// seconds.
const readyWithin = 5 * time.Minute

const (
	describing = "describe the table"
	creating   = "create the table"
)

// Migrate creates the table with Options.Settings, and waits until it can be used. An existing
// table with the right keys is not changed, and [Store.Differences] lists how it differs. If an
// existing table has other keys, Migrate returns an error that wraps [lease.ErrSetup]. Without a
// deadline it waits for at most five minutes.
//
// It may be repeated, and any number of processes may call it at the same time. No other function
// of the library calls it. It needs permissions to create and change tables, which workers and
// operators do not need: call it when a program is deployed, as a separate user.
//
// Point-in-time recovery is started after the table was created. If the process dies in between,
// recovery stays off. Differences reports this.
func (s *Store) Migrate(ctx context.Context) error {
	if err := s.settings.Check(); err != nil {
		return err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, readyWithin)
		defer cancel()
	}
	ctx, cancel, err := s.begin(ctx, "any")
	if err != nil {
		return err
	}
	defer cancel()

	fresh := false // the table did not exist when this call began
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		table, err := s.describe(ctx)
		var missing *types.ResourceNotFoundException
		switch {
		case errors.As(err, &missing):
			_, err := call(ctx, s, creating, s.createInput(), s.client.CreateTable)
			var exists *types.ResourceInUseException // another process was faster
			if err != nil && !errors.As(err, &exists) {
				return err
			}
			fresh = true
		case err != nil:
			return err
		default:
			if err := s.checkShape(table); err != nil {
				return err
			}
			switch table.TableStatus {
			case types.TableStatusCreating:
				fresh = true
			case types.TableStatusActive, types.TableStatusUpdating:
				if !fresh || !s.settings.PointInTimeRecovery {
					return nil
				}
				if again, err := s.startRecovery(ctx); !again {
					return err
				}
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("dynamostore: table %s is not ready yet: %w", s.table, ctx.Err())
		case <-time.After(pause):
		}
	}
}

func (s *Store) describe(ctx context.Context) (*types.TableDescription, error) {
	out, err := call(ctx, s, describing, &dynamodb.DescribeTableInput{TableName: &s.table}, s.client.DescribeTable)
	if err != nil {
		return nil, err
	}
	if out.Table == nil {
		return nil, fmt.Errorf("dynamostore: describe the table %s: the answer is empty", s.table)
	}
	return out.Table, nil
}

func (s *Store) createInput() *dynamodb.CreateTableInput {
	app, row := attrApp, attrRow
	name := s.name()
	in := &dynamodb.CreateTableInput{
		TableName: &name,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: &app, AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: &row, AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: &app, KeyType: types.KeyTypeHash},
			{AttributeName: &row, KeyType: types.KeyTypeRange},
		},
	}
	s.settings.apply(in)
	return in
}

// name returns the table's name, even if Options contains its ARN.
func (s *Store) name() string {
	if a, err := arn.Parse(s.table); err == nil {
		return strings.TrimPrefix(a.Resource, "table/")
	}
	return s.table
}

// checkShape returns an error for a table with other keys.
func (s *Store) checkShape(t *types.TableDescription) error {
	typeOf := map[string]types.ScalarAttributeType{}
	for _, d := range t.AttributeDefinitions {
		if d.AttributeName != nil {
			typeOf[*d.AttributeName] = d.AttributeType
		}
	}
	var has []string
	for _, k := range t.KeySchema {
		if k.AttributeName != nil {
			has = append(has, fmt.Sprintf("%s %s (%s)", k.KeyType, *k.AttributeName, typeOf[*k.AttributeName]))
		}
	}
	const want = "HASH app (S), RANGE row (S)"
	if got := strings.Join(has, ", "); got != want {
		return fmt.Errorf("dynamostore: %w: table %s belongs to another program: its keys are %s, weir needs %s; name another table",
			lease.ErrSetup, s.table, got, want)
	}
	return nil
}

// explain adds instructions to an error.
func (s *Store) explain(ctx context.Context, what string, err error) error {
	plain := fmt.Errorf("dynamostore: %s: %w", what, err)
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return plain
	}
	switch code := answer.ErrorCode(); code {
	case "ResourceNotFoundException":
		// DynamoDB returns the same error while the table is being created.
		if what != describing {
			if t, derr := s.describe(ctx); derr == nil && t.TableStatus == types.TableStatusCreating {
				return fmt.Errorf("dynamostore: %s: table %s is still being created: %w", what, s.name(), err)
			}
		}
		return fmt.Errorf("dynamostore: %w: there is no table %s%s; it is created on request only, once. %s\n(%w)",
			lease.ErrSetup, s.name(), s.place(), s.settings.Definitions(s.name()), err)
	case "AccessDeniedException":
		if said := s.explainSettings(what, err); said != nil {
			return said
		}
		if what == creating {
			return fmt.Errorf("dynamostore: %w: creating table %s is not allowed; it needs dynamodb:CreateTable, and dynamodb:TagResource for tags; or create it by other means. %s\n(%w)",
				lease.ErrSetup, s.name(), s.settings.Definitions(s.name()), err)
		}
		if what == scanning {
			return fmt.Errorf("dynamostore: %w: listing the applications of table %s is not allowed; it needs dynamodb:Scan, which workers do not need (%w)",
				lease.ErrSetup, s.name(), err)
		}
		return fmt.Errorf("dynamostore: %w: %s on table %s is not allowed; a worker needs this policy:\n\n%s\n\n(%w)",
			lease.ErrSetup, what, s.table, Policy(s.policyResource()), err)
	case "ValidationException":
		// Most likely the table has other keys. The table's description shows this, if the caller
		// may read it.
		if what == describing || what == creating {
			return plain
		}
		if t, derr := s.describe(ctx); derr == nil {
			if serr := s.checkShape(t); serr != nil {
				return fmt.Errorf("%w (%w)", serr, err)
			}
		}
	}
	return plain
}

// place describes where the client looks for the table.
func (s *Store) place() string {
	o := s.client.Options()
	var at string
	if o.Region != "" {
		at = " in region " + o.Region
	}
	if o.BaseEndpoint != nil {
		at += " at " + *o.BaseEndpoint
	}
	return at
}

func (s *Store) policyResource() string {
	if arn.IsARN(s.table) {
		return s.table
	}
	region := s.client.Options().Region
	if region == "" {
		region = "*"
	}
	return "arn:aws:dynamodb:" + region + ":*:table/" + s.table
}

// Policy returns an IAM policy as JSON. It contains the permissions that a worker needs for the
// table with the given ARN. [Store.Migrate] also needs dynamodb:CreateTable, dynamodb:TagResource
// for tags, and dynamodb:UpdateContinuousBackups for point-in-time recovery. [Store.Apps] also
// needs dynamodb:Scan.
func Policy(tableARN string) string {
	return `{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Effect": "Allow",
      "Action": [
        "dynamodb:DeleteItem",
        "dynamodb:DescribeTable",
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:Query",
        "dynamodb:UpdateItem"
      ],
      "Resource": "` + tableARN + `"
    }
  ]
}`
}
