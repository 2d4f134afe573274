package tree

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDoubledInObjectsOfEverySize: a doubled member is noticed however many members
// its object has, with escapes in its name or without.
func TestDoubledInObjectsOfEverySize(t *testing.T) {
	for _, size := range []int{2, 3, fewNames, fewNames + 1, 63, 64, 65, 128, 500} {
		for _, again := range []string{`"n0"`, `"\u006e0"`} {
			var members []string
			for i := range size - 1 {
				members = append(members, fmt.Sprintf(`"n%d":%d`, i, i))
			}
			single, err := Parse([]byte("{" + strings.Join(members, ",") + "}"))
			if err != nil || len(single.Doubled) > 0 {
				t.Errorf("%d: %v, %v", size, single.Doubled, err)
			}
			doc, err := Parse([]byte("{" + strings.Join(append(members, again+":-1"), ",") + "}"))
			if err != nil || !slices.Equal(doc.Doubled, []string{"n0"}) || doc.Root.Len() != size-1 {
				t.Errorf("%d: %v, %d members, %v", size, doc.Doubled, doc.Root.Len(), err)
			}
			if n, ok := doc.Root.Get("n0").Int64(); !ok || n != 0 {
				t.Errorf("%d: n0 is %d", size, n)
			}
		}
	}
}

// TestShortWhole wants what strconv reads of every text that it takes.
func TestShortWhole(t *testing.T) {
	for _, text := range []string{"", "-", "0", "-0", "7", "-7", "007", "999999999999999999", "-999999999999999999", "1000000000000000000", "+1", "1.0", "1e2", "1_0", " 1", "1 ", "١"} {
		n, ok := shortWhole(text)
		want, err := strconv.ParseInt(text, 10, 64)
		if ok && (err != nil || n != want) {
			t.Errorf("%q: %d, want %d, %v", text, n, want, err)
		}
		if digits := strings.TrimPrefix(text, "-"); !ok && err == nil && len(digits) <= 18 && digits[0] != '+' {
			t.Errorf("%q is not read", text)
		}
	}
}
