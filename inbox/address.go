package inbox

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/onceward/onceward"
)

// addresses tells who sent a request and which URL it was sent to, as far as the
// proxies that it came through can be believed.
type addresses struct {
	public  string // the configured URL without a trailing slash, "" for the request's
	trusted []netip.Prefix
}

// client returns the address of the sender: that of the connection or, where that
// is a trusted proxy, the last one on the way that is none.
func (a addresses) client(r *http.Request) string {
	peer, ok := parseAddress(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr
	}
	hops := listed(r.Header["X-Forwarded-For"]) // the farthest first
	for i := len(hops) - 1; i >= 0 && a.trusts(peer); i-- {
		before, ok := parseAddress(hops[i])
		if !ok {
			break // whatever stands before it was not written by a proxy we trust
		}
		peer = before
	}
	return peer.String()
}

// url returns the absolute URL that the sender was given: the configured one with
// the request's path and query, else the one that was seen.
func (a addresses) url(r *http.Request) string {
	target := requestTarget(r)
	if a.public != "" {
		return a.public + target
	}
	scheme, host := "http", r.Host
	if r.TLS != nil {
		scheme = "https"
	}
	if peer, ok := parseAddress(r.RemoteAddr); ok && a.trusts(peer) {
		if proto := last(r.Header["X-Forwarded-Proto"]); proto != "" {
			scheme = strings.ToLower(proto)
		}
		if forwarded := last(r.Header["X-Forwarded-Host"]); forwarded != "" {
			host = forwarded
		}
	}
	return scheme + "://" + host + target
}

// requestTarget returns path and query as they stood in the request line, also
// where a mux has cut off a prefix since.
func requestTarget(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		return r.RequestURI
	}
	return r.URL.RequestURI()
}

func (a addresses) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(a.trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// parseAddress reads an address with or without a port, in brackets or not.
func parseAddress(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	return addr.Unmap().WithZone(""), err == nil
}

func listed(values []string) []string {
	var list []string
	for _, v := range values {
		for item := range strings.SplitSeq(v, ",") {
			list = append(list, strings.TrimSpace(item))
		}
	}
	return list
}

// last returns the last item, which the nearest proxy wrote: those before it may
// be the client's.
func last(values []string) string {
	list := listed(values)
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// stored returns the URL of a delivery that is read again. Its host is the
// configured one: what the sender saw is not kept.
func (a addresses) stored(d *onceward.Delivery) string {
	if a.public != "" {
		return a.public + d.Target
	}
	return "http://localhost" + d.Target
}
