// Package measure counts what the clients saw: a Meter beside each virtual
// client, a Recorder that sums all meters, and one-second Intervals that go
// to a Sink.
//
// Bytes are counted when they move, operations when they end. The meters
// allocate nothing and share nothing between processors.
package measure
