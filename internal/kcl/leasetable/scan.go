// Package leasetable reads and writes the KCL's lease table in DynamoDB, for package kcl. It
// translates attributes and makes calls, but makes no decisions.
package leasetable

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/internal/kcl"
)

// Scan reads a whole lease table with consistent reads. It requests only the attributes in
// [kcl.Attributes]. An error that does not come from the service is about the content of the table.
func Scan(ctx context.Context, client *dynamodb.Client, table string) (kcl.Table, error) {
	in := &dynamodb.ScanInput{
		TableName:                &table,
		ConsistentRead:           aws.Bool(true),
		ExpressionAttributeNames: map[string]string{},
	}
	var names []string
	for i, name := range kcl.Attributes {
		short := fmt.Sprintf("#a%d", i)
		in.ExpressionAttributeNames[short] = name
		names = append(names, short)
	}
	in.ProjectionExpression = aws.String(strings.Join(names, ", "))
	var items []kcl.Item
	for {
		out, err := client.Scan(ctx, in)
		if err != nil {
			return kcl.Table{}, err
		}
		for _, it := range out.Items {
			items = append(items, Item(it))
		}
		if len(out.LastEvaluatedKey) == 0 || len(items) > kcl.MaxItems {
			return kcl.Read(items)
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// Item translates an item.
func Item(in map[string]types.AttributeValue) kcl.Item {
	it := make(kcl.Item, len(in))
	for name, v := range in {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			it[name] = kcl.Value{Type: kcl.Text, Text: v.Value}
		case *types.AttributeValueMemberN:
			it[name] = kcl.Value{Type: kcl.Number, Text: v.Value}
		case *types.AttributeValueMemberSS:
			it[name] = kcl.Value{Type: kcl.Texts, Texts: v.Value}
		default:
			it[name] = kcl.Value{}
		}
	}
	return it
}
