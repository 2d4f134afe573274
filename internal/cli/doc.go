// Package cli is the command line of Onceward: a table of commands over the
// engine, the two stores and the configuration file.
//
// Reading commands (entities, events, provider) open the store of the
// configuration themselves and need no running server: SQLite allows several
// processes on one file, and PostgreSQL any number. Writing goes through a
// server: send posts to it like a sender.
//
// Exit codes: 0 the command did what it says; 1 it could not, or the answer is
// no (verify: invalid, check: faults, demo: the figures do not agree); 2 it was
// called in a way that means nothing.
//
// Results go to standard output, everything else to standard error. With --json
// the output is one JSON value, in the shapes of the admin API where there is
// one.
package cli
