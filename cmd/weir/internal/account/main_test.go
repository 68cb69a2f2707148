package main

import (
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-go/weir/internal/proof/leaktest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

func TestTheConsumerIsTaken(t *testing.T) {
	if _, err := consumer(aws.Config{Region: "us-east-1"}); err != nil { // another one than the stream's
		t.Error(err)
	}
}
