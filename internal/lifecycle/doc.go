// Package lifecycle proves, on each store, that the catalogue's sample
// lifecycles end in the same rows whatever the order, the duplication and the
// batching of their deliveries. It has no code beside its tests.
package lifecycle
