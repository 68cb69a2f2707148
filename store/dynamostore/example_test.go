package dynamostore_test

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-go/weir/store/dynamostore"
)

// The leases are items of one table.
func ExampleNew() {
	open := func(cfg aws.Config) *dynamostore.Store {
		return dynamostore.New(dynamodb.NewFromConfig(cfg), dynamostore.Options{Table: "weir"})
	}
	_ = open
}

// The definition of the table for the AWS CLI.
func ExampleDefinitions() {
	fmt.Println(dynamostore.Definitions("weir"))
}

// The permissions of workers.
func ExamplePolicy() {
	fmt.Println(dynamostore.Policy("arn:aws:dynamodb:eu-west-1:111122223333:table/weir"))
}
