// Package content makes the bytes of synthetic files: different for every
// seed, reproducible, checkable, and cheap to send, because all files are
// windows into one pattern that the kernel can send from a memory file.
//
// A file of a given seed and size is: a head of HeadSize bytes made from the
// seed, then the pattern, read from an offset that follows from the seed and
// wrapping around at its end. A file shorter than the head is the head's start.
package content
