package config

// Key is a key of onceward.yaml.
type Key struct {
	Name, Type, Default, About string
}

// Keys returns the table of the file's own keys, from which the reader, the
// schema and the documentation are made.
func Keys() []Key {
	return []Key{
		{"store", "URL", DefaultStore, "sqlite:FILE or postgres://user:password@host/database"},
		{"listen", "address", DefaultListen, "where deliveries come in; the sources' paths and nothing else"},
		{"public_url", "URL", "the request's", "how senders address it; needed where a signature covers the address"},
		{"admin", "map", "", "the admin listener: listen and token"},
		{"trusted_proxies", "list of networks", "none", "proxies that may say where a request came from, as 10.0.0.0/8"},
		{"sources", "map", "none", "the inbound endpoints, by name"},
		{"destinations", "map", "none", "outbound targets; not there yet"},
	}
}

// AdminKeys returns the keys under admin.
func AdminKeys() []Key {
	return []Key{
		{"listen", "address", DefaultAdmin, "where the admin API, health and metrics are"},
		{"token", "reference", "none", "what the admin API wants as a bearer token, as $ONCEWARD_ADMIN_TOKEN; without it, it answers on this machine only"},
	}
}

// SourceKeys returns the keys of a source that do not describe its sender.
func SourceKeys() []Key {
	return []Key{
		{"secrets", "list of references", "none", "$NAME or file:PATH; several may be live at once"},
		{"params", "map", "none", "what the provider wants besides, as texts or references"},
		{"path", "path", "/in/NAME", "where its deliveries come in"},
		{"max_body", "size", "1MiB", "the longest body that is read"},
	}
}

func names(keys []Key) []string {
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k.Name
	}
	return list
}
