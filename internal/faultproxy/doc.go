// Package faultproxy breaks connections, for tests. A [Proxy] stands between a
// client and a server of TCP on loopback, hands on what they say to each other,
// and does to it what networks do: it ends or resets connections, at a message
// that the test chooses; it makes them half-open, so that nothing comes through
// and neither side is told; it delays; it takes no more, until it is told to.
//
// Where the protocol's messages begin and end is said by the test, as a
// [Framing]: the proxy knows no protocol.
package faultproxy
