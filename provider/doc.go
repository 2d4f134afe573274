// Package provider reads what senders deliver, as provider files describe it.
//
// A provider is data: one YAML file in the language of docs/language.md says how a
// sender's signature is checked, what makes two deliveries the same event, and
// what each event says about which entity. The files of the catalogue are
// embedded; [Catalog] lists them and [Compile] lays the keys of a configured
// source over one of them. [Parse] compiles a file of one's own.
//
// Everything is checked when it is compiled, and all faults are reported at
// once, with their places, as [*Errors]. What comes out, a [*Provider], is
// immutable and safe for concurrent use. The life of a delivery in it is:
//
//   - [Provider.Verify] checks it over its bytes as they came;
//   - [Provider.Challenge] answers it if it is a handshake;
//   - [Provider.Read] splits it into events and says which facts each tells.
//     Reading is pure and cannot fail: a body that cannot be read is an event
//     all the same, and a fact that cannot be computed is held with the reason.
//
// [Provider.Mask] gives the header and the target as they may be stored.
// [Provider.Sign] makes a request that Verify accepts, and [Samples] holds
// bodies to send; both are for tests and for `onceward send`.
package provider
