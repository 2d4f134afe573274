// Package pgtest gives tests a throw-away PostgreSQL and a fresh database each.
//
// A test calls [Start] and gets the address of an empty database. The server
// behind it is, in this order: the one that the environment variable [Env]
// names; the one that [Main] started for the whole test binary; one of the
// test's own. Servers that this package starts listen on loopback and in a
// temporary folder only, and end with the test binary, even if it is killed.
//
// A machine without PostgreSQL fails the test: a store that was not tested is
// not known to work.
package pgtest
