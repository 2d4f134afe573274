package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// guard decides who may use the admin API. With a token, whoever sends it; without
// one, whoever is on this machine and asked for this machine by name, so that a page
// in a browser cannot reach it under a name of its own (DNS rebinding).
type guard struct {
	set    bool
	digest [sha256.Size]byte // of the token
}

func newGuard(token string) guard {
	return guard{set: token != "", digest: sha256.Sum256([]byte(token))}
}

// check returns nil if the request may pass.
func (g guard) check(r *http.Request) error {
	if g.set {
		return g.checkToken(r)
	}
	if !isLoopback(r.RemoteAddr) || r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != "" {
		return fail(http.StatusForbidden, "without a token the admin API answers only on this machine; set admin.token in onceward.yaml and send it as Authorization: Bearer")
	}
	if !isLocalName(r.Host) {
		return fail(http.StatusForbidden, "without a token the admin API answers only to localhost; ask for http://127.0.0.1 or http://localhost, or set admin.token in onceward.yaml")
	}
	return nil
}

func (g guard) checkToken(r *http.Request) error {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token))) // of equal length, so the comparison tells nothing
	if strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sum[:], g.digest[:]) == 1 {
		return nil
	}
	return fail(http.StatusUnauthorized, "the token is missing or wrong; send admin.token of onceward.yaml as Authorization: Bearer TOKEN")
}

func isLoopback(remote string) bool {
	addr, err := netip.ParseAddrPort(remote)
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// isLocalName reports whether a Host header names this machine.
func isLocalName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
