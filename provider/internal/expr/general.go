package expr

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"hash/crc32"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/onceward/onceward/provider/internal/tree"
)

// first gives the first argument that is not empty, else the last.
func first(_ *frame, args []tree.Value) (tree.Value, error) {
	for _, v := range args {
		if !empty(v) {
			return v, nil
		}
	}
	return args[len(args)-1], nil
}

// empty reports whether v is missing, null, "", [] or {}. An object that is answered by a function is not.
func empty(v tree.Value) bool {
	switch v.Kind() {
	case tree.Missing, tree.Null:
		return true
	case tree.String:
		s, _ := v.Text()
		return s == ""
	case tree.List, tree.Object:
		return v.Len() == 0 && !v.IsLookup()
	}
	return false
}

// greatest gives the greatest whole number; nulls are ignored.
func greatest(_ *frame, args []tree.Value) (tree.Value, error) {
	best, found := int64(0), false
	for _, v := range args {
		if v.IsNull() {
			continue
		}
		n, err := intArg(v)
		if err != nil {
			return tree.Value{}, err
		}
		if !found || n > best {
			best, found = n, true
		}
	}
	if !found {
		return tree.NullValue(), nil
	}
	return tree.IntOf(best), nil
}

// toInt gives the whole number of a text or of an instant (Unix seconds); of a decimal it drops what follows the point,
// as CEL does.
func toInt(_ *frame, args []tree.Value) (tree.Value, error) {
	switch v := args[0]; v.Kind() {
	case tree.Number:
		if n, ok := v.Int64(); ok {
			return tree.IntOf(n), nil
		}
		return truncated(v)
	case tree.String:
		s, _ := v.Text()
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return tree.Value{}, fault("the text is not a whole number of 64 bits", "minor(x, currency) reads a decimal from a text")
		}
		return tree.IntOf(n), nil
	case tree.Time:
		at, _ := v.Time()
		return tree.IntOf(at.Unix()), nil
	default:
		return tree.Value{}, fault("int(x) does not take "+describe(v), "")
	}
}

// truncated gives the whole part of a decimal.
func truncated(v tree.Value) (tree.Value, error) {
	text, _ := v.NumberText()
	n, how := tree.Truncated(text)
	if how == tree.TooLarge {
		return tree.Value{}, fault("the number does not fit 64 bits", "")
	}
	return tree.IntOf(n), nil
}

// toText gives the text of a scalar.
func toText(_ *frame, args []tree.Value) (tree.Value, error) {
	s, ok := args[0].Text()
	if !ok {
		return tree.Value{}, fault("string(x) does not take "+describe(args[0]), "")
	}
	return tree.StringOf(s), nil
}

// size gives the characters of a text, the elements of a list or the members of an object.
func size(f *frame, args []tree.Value) (tree.Value, error) {
	switch v := args[0]; v.Kind() {
	case tree.String:
		s, _ := v.Text()
		return tree.IntOf(int64(utf8.RuneCountInString(s))), f.chargeText(len(s))
	case tree.List, tree.Object:
		return tree.IntOf(int64(v.Len())), nil
	default:
		return tree.Value{}, fault("size(x) does not take "+describe(v), "")
	}
}

// parseJSON reads a body inside a body, as strictly; there a doubled member is an error, because nobody else sees it.
func parseJSON(f *frame, args []tree.Value) (tree.Value, error) {
	s, err := textArg(args[0])
	if err != nil {
		return tree.Value{}, err
	}
	if err := f.charge(len(s) / 4); err != nil {
		return tree.Value{}, err
	}
	doc, err := tree.ParseText(s)
	switch {
	case err != nil:
		return tree.Value{}, &Error{Offset: -1, Msg: "the text is not JSON: " + err.Error(), cause: err}
	case doc.Doubled != nil:
		return tree.Value{}, fault("the JSON in the text has doubled members, which readers take differently", "")
	}
	return doc.Root, nil
}

// fromBase64 gives the bytes, in either alphabet and with or without padding.
func fromBase64(f *frame, args []tree.Value) (tree.Value, error) {
	s, err := textArg(args[0])
	if err != nil {
		return tree.Value{}, err
	}
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(s, "-_") {
		encoding = base64.RawURLEncoding
	}
	data, err := encoding.DecodeString(strings.TrimRight(s, "=\r\n"))
	if err != nil {
		return tree.Value{}, fault("the text is not base64", "")
	}
	return madeText(f, len(s), string(data))
}

func sha256Hex(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func crc32Decimal(s string) string {
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(s))), 10)
}

// same tells in constant time whether two texts are equal; false if they are empty. Their hashes are compared, so that
// the time does not tell their lengths either.
func same(f *frame, args []tree.Value) (tree.Value, error) {
	a, ok := args[0].Text()
	b, both := args[1].Text()
	if !ok || !both {
		return tree.Value{}, fault("same(a, b) compares texts, not "+describe(args[0])+" and "+describe(args[1]), "")
	}
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	equal := subtle.ConstantTimeCompare(x[:], y[:]) == 1
	return tree.BoolOf(equal && a != ""), f.chargeText(len(a) + len(b))
}

// sign gives what the source's verify would put on a text.
func sign(f *frame, args []tree.Value) (tree.Value, error) {
	s, ok := args[0].Text()
	if !ok {
		return tree.Value{}, fault("sign(x) does not take "+describe(args[0]), "")
	}
	signer, ok := f.in.(Signer)
	if !ok {
		return tree.Value{}, fault("nothing can sign here", "sign(x) stands in challenge, of a source with a secret")
	}
	signed, err := signer.Sign(s)
	if err != nil {
		return tree.Value{}, &Error{Offset: -1, Msg: "the text cannot be signed: " + err.Error(), cause: err}
	}
	return madeText(f, len(s), signed)
}
