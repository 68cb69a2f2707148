// Package behaviour tests what users of package weir rely on. It runs whole consumers and readers
// through the public API, with an embedded Kinesis and mostly in virtual time. It contains only
// tests.
package behaviour
