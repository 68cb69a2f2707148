// Package producer writes records to an Amazon Kinesis data stream: in order per key, packed, close
// to the limit of each shard, and with an outcome for every record.
//
//	p, err := producer.New(client, producer.Options{Stream: "orders"})
//	...
//	pending, err := p.Put(ctx, producer.Record{PartitionKey: "customer-7", Data: data})
//	...
//	result, err := pending.Wait(ctx)
//	...
//	err = p.Close(ctx) // sends what is left
//
// # Order
//
// Records with the same partition key and explicit hash key are stored in the order of their calls
// of Put. This holds when the service refuses records, and across splits and merges.
// [Options].Unordered drops the order for lower latency. A stream that distributes records by
// itself (record distribution AUTO) has no order.
//
// # Packing
//
// Small records of one shard are packed into one record of the stream, in the format of the Kinesis
// Producer Library (KPL). Each keeps its own keys. Consumers must unpack them: weir, the Kinesis
// Client Library, AWS Lambda functions with a de-aggregation module and others do.
// [Options].NoAggregation switches packing off. Data that already are an aggregate are sent
// unchanged.
//
// # Delivery
//
// A record is stored at least once, or its error says why not. If an answer of the service is lost,
// the record is sent again and may be in the stream twice; see [Result].Repeated. Records never
// expire unless [Options].MaxAge is set. If the service refuses records for long, the buffer fills
// and Put blocks.
//
// docs/guide/producing.md is the guide, and docs/decisions/0020-producer.md describes the design.
package producer
