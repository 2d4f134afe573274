// Package postgres keeps Onceward's events, rows and jobs in PostgreSQL, for any
// number of processes on one database.
//
// [Open] makes a store from an address, [New] from a pool that the program has
// open anyway. Either creates the tables that are missing, in one schema and
// under one prefix, and touches nothing else in the database. An ordinary role
// is enough, and so is a PgBouncer in transaction mode in between.
//
// A commit takes two round trips, each a pipeline: the first claims the events,
// locks the rows and reads them; the second writes and commits. The facts are
// folded in between, in Go. The rows' locks make it succeed. What makes it right
// is the WHERE of the update, which names what the row was when it was read: a
// refusal fails the transaction in the server, so that the COMMIT behind it does
// not go through.
//
// For people there is a view, onceward_entities: source, account, mode, kind,
// key, status, told, version, tie (names with commas between them), data (JSON),
// created and updated (times with time zone).
//
// What writes goes through the driver's pipelines, below pgx: a query tracer on a
// pool of yours sees what reads, and no commit.
//
// Claims and rows are found by hashes, so that writes fall on random pages, each
// of which PostgreSQL writes to its log whole once after a checkpoint. Give a busy
// server max_wal_size = 4GB or more and checkpoint_timeout = 30min.
//
// Durable means durable on the primary. What a failover to an asynchronous
// standby may lose is the operator's choice: synchronous_standby_names.
package postgres
