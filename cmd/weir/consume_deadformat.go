package main

import (
	"strings"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/deadletter/sqsletters"
	"github.com/weir-go/weir/sink/s3sink/s3letters"
)

// lambdasForm is what letters in Lambda's form say of where records are from. An account is known
// only of a stream that is given by its ARN.
func (o *consumeOptions) lambdasForm(region string) (deadletter.Lambda, error) {
	before := ""
	for _, s := range o.streams {
		at, _, found := strings.Cut(s, ":stream/")
		if found && before != "" && at != before {
			return deadletter.Lambda{}, usagef("--dead-format lambda: %s and %s are of two accounts or regions, and letters name one: give each a worker of its own", before, at)
		}
		if found {
			before = at
		}
	}
	if before == "" {
		before = "arn:aws:kinesis:" + region + ":000000000000"
	}
	_, first, found := strings.Cut(o.streams[0], ":stream/")
	if !found {
		first = o.streams[0]
	}
	return deadletter.Lambda{
		FunctionARN: strings.Replace(before, ":kinesis:", ":lambda:", 1) + ":function:" + o.app,
		StreamARN:   before + ":stream/" + first,
	}, nil
}

// inLambdasForm has letters written in Lambda's form.
func (o *openLetters) inLambdasForm(form func() (deadletter.Lambda, error)) error {
	of, err := form()
	if err != nil {
		return err
	}
	if o.place.kind == placeQueue {
		to, err := sqsletters.NewLambda(o.sqs, o.place.name, of)
		if err == nil {
			o.Destination, o.writable = to, to.Check
		}
		return err
	}
	to, err := s3letters.NewLambda(o.s3, o.place.bucket, o.place.prefix, of)
	if err == nil {
		o.Destination, o.writable = to, to.Writable
	}
	return err
}
