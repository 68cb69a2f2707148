// Package source talks to Kinesis to read: it lists shards and reads them. It knows no lease, no
// checkpoint and no handler.
//
// Every call has a deadline and is made without the SDK's own retries, which would hide throttling
// for seconds: pacing, back-off and the mending of expired iterators happen here, where they can be
// seen.
package source
