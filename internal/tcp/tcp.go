// Package tcp has the lean connections that thousands of virtual clients
// need: little memory each, bytes that the kernel drops instead of copying,
// bytes that the kernel sends from a file.
package tcp
