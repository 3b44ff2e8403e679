// Package tcp has the lean connections that thousands of virtual clients
// need: little memory each, bytes that the kernel drops instead of copying,
// bytes that the kernel sends from a file.
//
// A Dialer makes connections and owns what they share: the addresses of the
// hosts, and the contexts that may interrupt them. A Conn belongs to one
// goroutine at a time. An operation starts with Begin, which says until when
// and under which context it may run; no later call of the same operation
// allocates memory.
//
// On Linux a connection is a non-blocking socket in the runtime's poller and
// nothing else. Other systems get the same behavior from package net, at its
// price.
package tcp
