package verify

import (
	"net/url"
	"strings"
)

// addressVariants returns an absolute address as it is, and with or without its
// port: a port that is written is left out, one that is not is the scheme's own.
// The text is otherwise untouched, for a sender signs what it was given.
func addressVariants(address string) []string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return []string{address}
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	colon := strings.LastIndexByte(host, ':')
	if colon >= 0 && colon > strings.LastIndexByte(host, ']') {
		cut := len(authority) - len(host) + colon
		return []string{address, scheme + "://" + authority[:cut] + tail}
	}
	port := ""
	switch strings.ToLower(scheme) {
	case "https":
		port = ":443"
	case "http":
		port = ":80"
	}
	if port == "" || host == "" {
		return []string{address}
	}
	return []string{address, scheme + "://" + authority + port + tail}
}

// withQuery puts a parameter into an address, in place of any of its name, before
// the fragment. The other parameters stay as they are written.
func withQuery(address, name, value string) string {
	base, fragment, hasFragment := strings.Cut(address, "#")
	base, query, _ := strings.Cut(base, "?")
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(pair, "=")
		if decoded, err := url.QueryUnescape(key); pair != "" && (err != nil || decoded != name) {
			kept = append(kept, pair)
		}
	}
	kept = append(kept, url.QueryEscape(name)+"="+url.QueryEscape(value))
	base += "?" + strings.Join(kept, "&")
	if hasFragment {
		base += "#" + fragment
	}
	return base
}
