// Package dashboard serves a web page about applications: the state of each with its reason, and a
// picture of the shards of a stream over time. It reads the store, and Kinesis if configured, never
// the memory of a consumer, so it also works without any live worker.
//
// The page is read-only unless Options.Authorize is set. It shows names, positions and errors of
// applications, no payloads, and only the beginning of a hash of partition keys. The program that
// serves it controls access: [Handler] asks for no password.
package dashboard
