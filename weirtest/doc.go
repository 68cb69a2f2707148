// Package weirtest runs consumers in tests: until so many records are handled, until the tip of a
// stream, until whatever the test waits for, and it lets workers die.
//
//	func TestBilling(t *testing.T) {
//		srv := kinesistest.NewServer(t)
//		srv.CreateStream("orders", 2)
//		srv.Put("orders", "customer-7", []byte("one espresso"))
//
//		worker := weirtest.Start(t, srv.Client(), memstore.New(), weir.Options{Stream: "orders", App: "billing"}, &till)
//		worker.Until(weirtest.Handled(1, worker))
//		worker.Stop()
//		...
//	}
//
// Everything works in real time and in the virtual time of a [testing/synctest] bubble, with a
// server that has kinesistest.Config.InMemory: there a failover takes no time at all.
// docs/testing.md has four whole tests.
//
// It is a package of its own because kinesistest imports nothing of weir: a server that shared the
// client's code would share its misunderstandings.
package weirtest
