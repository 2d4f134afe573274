// Package verify decides whether a delivery was made by the sender it claims:
// the schemes and parameters of `verify` in a provider file, and the handshakes
// of `challenge`.
//
// A delivery is verified over its bytes as they came, before anything reads
// them as JSON or as a form. Only an expression of the file (a hole of `signed`,
// a `field`, a `timestamp`, `require`) may look into the body, and it does so
// through the Input it is given, which parses when first asked.
//
// [Compile] checks the text of the file and reports every fault at once. What it
// gives is immutable and safe for concurrent use. Secrets are parsed once, by
// [Verifier.ParseSecret], into a form that no formatting verb and no logger
// prints. [Verifier.Verify] takes the time as an argument and answers with what
// it accepted or with a [*Rejected], whose text is for people and never holds a
// secret, a signature or a part of the body.
//
// What a sender could enlarge is bounded in limits.go: the length and the number
// of values, their pieces, the signatures tried, a decoded body, and the total
// of bytes hashed and of public-key operations for one delivery. Comparisons of
// secret-dependent values are in constant time for equal lengths, and are made on
// digests or MACs, whose length tells nothing.
package verify
