// Package server puts an inbox on the network: a public listener that answers
// the sources' paths and nothing else, and an admin listener with health,
// metrics and the JSON API of package v1.
//
// It knows no store and no configuration file: what it needs of them it is
// given as small interfaces. A request to the admin side passes the guard (a
// bearer token, or this machine only), then one entry of the table of routes,
// whose handler returns an error that [translate] turns into an answer.
package server
