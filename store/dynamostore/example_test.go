package dynamostore_test

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-go/weir/store/dynamostore"
)

// The leases are stored as items of one table.
func ExampleNew() {
	open := func(cfg aws.Config) *dynamostore.Store {
		return dynamostore.New(dynamodb.NewFromConfig(cfg), dynamostore.Options{Table: "weir"})
	}
	_ = open
}

// This prints the definition of the table for the AWS CLI, Terraform and CloudFormation.
func ExampleDefinitions() {
	fmt.Println(dynamostore.Definitions("weir"))
}

// This prints the IAM policy of a worker.
func ExamplePolicy() {
	fmt.Println(dynamostore.Policy("arn:aws:dynamodb:eu-west-1:111122223333:table/weir"))
}
