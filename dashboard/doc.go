// Package dashboard serves a web page about applications. The page shows the state of each
// application with the reason, and a picture of a stream's shards over time. It reads the store,
// and Kinesis if Options.Kinesis is set. It does not read the memory of a consumer, so it works
// even if no worker is running.
//
// The page is read-only unless Options.Authorize is set. It shows names, positions and errors of
// applications, and the first characters of hashes of partition keys. It shows payloads only if
// Options.ShowPayloads is set. [Handler] asks for no password: the program that serves the page
// must control access.
package dashboard
