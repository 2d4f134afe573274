package postgres

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// names puts the schema and the prefix into statements, which have {claims} and
// the like in place of names.
type names struct {
	schema, prefix string
	replacer       *strings.Replacer
}

// objects are what the migrations create, in alphabetical order.
var objects = []string{
	"claims", "entities", "events", "facts", "jobs", "mappings", "meta", "nodes",
	"quarantine", "repeats", "rows", "schema", "variants",
}

// longestObject bounds the names that follow the prefix, indexes included: a
// name in PostgreSQL has 63 bytes.
const longestObject = len("quarantine_source_idx")

func newNames(schema, prefix string) (names, error) {
	if schema == "" || len(schema) > 63 || strings.ContainsAny(schema, "\"'$\\\x00") {
		return names{}, fmt.Errorf("schema %q: a schema's name has 1 to 63 bytes and no quotes, backslash or $", schema)
	}
	if len(prefix) > 63-longestObject || strings.Trim(prefix, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || prefix == "" || prefix[0] >= '0' && prefix[0] <= '9' {
		return names{}, fmt.Errorf("prefix %q: a prefix is of a-z, 0-9 and _, begins with no digit, and has at most %d bytes", prefix, 63-longestObject)
	}
	pairs := []string{"{prefix}", prefix}
	for _, o := range objects {
		pairs = append(pairs, "{"+o+"}", pgx.Identifier{schema, prefix + o}.Sanitize())
	}
	return names{schema, prefix, strings.NewReplacer(pairs...)}, nil
}

// sql returns the statement with the names in it.
func (n names) sql(statement string) string { return n.replacer.Replace(statement) }
