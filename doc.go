// Package onceward holds the vocabulary and the contracts of Onceward, an inbox
// for webhooks. It is pure: it opens no file, no connection and no clock.
//
// Providers deliver webhooks at least once and in no order. The life of one is:
//
//   - a [Delivery] arrives over HTTP and is verified over its raw bytes;
//   - it carries one [Event] or more, each unique per source, scope and key;
//   - an event yields facts: a [Fact] is what one event says about one entity;
//   - the facts of an entity are folded into its [Row], which only moves forward
//     ([Fold] is the definition, [Row.Add] the incremental way);
//   - a fact that alters its row is a [Change], and jobs hang on changes.
//
// A [Store] keeps all of it in one commit, synced to disk; [Plan] is the part of
// that commit that every store shares. Packages sqlite and postgres are the two
// stores, package inbox the engine, package provider the language in which
// senders are described.
package onceward
