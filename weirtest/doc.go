// Package weirtest runs consumers in tests: until a number of records is handled, until the tip of
// a stream, or until any condition. It can also kill workers.
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
// It works in real time and in the virtual time of a [testing/synctest] bubble, with a server that
// has kinesistest.Config.InMemory. In a bubble a failover takes no time. docs/testing.md has four
// complete tests.
//
// It is a separate package because kinesistest imports nothing of weir: a server that shared the
// client's code would share its misunderstandings.
package weirtest
