// Command bench measures how many events a second Onceward acknowledges
// durably, and at what cost, beside a server that stores nothing and beside the handlers
// that people write by hand:
//
//	go run ./bench
//
// README.md says how it measures and what each figure means.
package main
