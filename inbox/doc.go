// Package inbox is the engine of Onceward: an http.Handler that takes webhooks in,
// and the workers that do what hangs on them.
//
// The life of a delivery:
//
//   - its body is read, up to a limit, and kept exactly as it came;
//   - the provider verifies it over these bytes; one that fails goes to the
//     quarantine and is answered 401;
//   - the provider splits it into events and reads which facts each tells;
//   - the committer puts the events into a batch, and one commit stores them,
//     folds their facts into rows and makes the jobs that follow;
//   - when, and only when, that commit is known to be synced to disk, the sender
//     is answered 200. A duplicate, a stale fact, one that is held: 200 as well. A
//     full queue, a store that is down, a commit whose outcome is unknown: 503
//     with Retry-After.
//
// Make an [Inbox] with [New], mount [Inbox.Source] where the sender's URL already
// is, or [Inbox.Handler] for all sources at /in/NAME, register work with
// [Inbox.Handle], and let [Inbox.Run] do it.
package inbox

// BUG(inbox): The body of a delivery that holds more events than one batch (512)
// is kept once for each batch that it takes.
