// Package emulator makes the links that package link describes, for as long
// as a run lasts, and takes them away again, also when the run is killed.
//
// There are three ways, of which [Best] chooses. The clients of a link live in
// a network namespace, a site, which has nothing but the link; packets pass
// through a process that keeps them as long as the link takes (Userspace), or
// through the kernel's own queues (Kernel). Where the privilege for namespaces
// is missing a TCP proxy (Proxy) stands between clients and service: it shares
// a rate and delays, but TCP itself runs over the loopback then, so its slow
// start, windows and recovery from loss are not those of the link.
//
// Nothing that was there before is changed: no interface, route, setting or
// queue that this package did not make. Whatever it makes hangs on open files
// of processes that end with the run, so nothing needs to be found and removed
// later.
package emulator
