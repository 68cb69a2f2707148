// Package dashboard shows applications to people: a page that says what state each is in and why,
// and that draws the shards of a stream over time. It reads the store, and Kinesis if it may, and
// never the memory of a consumer, so it also shows an application of which no worker lives.
//
// The page writes nothing unless Options.Authorize lets it. What it shows is data of the
// application's names, positions and errors: no payloads, and of partition keys the beginning of a
// hash. Who may see it is up to the program that serves it: [Handler] asks nobody for a password.
package dashboard
