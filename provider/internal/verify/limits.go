package verify

// What one delivery may make the verifier do. A delivery beyond a limit is
// rejected as malformed.
const (
	// maxValueBytes bounds one header line, query value or field that holds
	// signatures. Sixteen RSA signatures of 4096 bits fit.
	maxValueBytes = 16 << 10
	// maxValues bounds the header lines or query values read.
	maxValues = 16
	// maxPieces bounds the pieces of one value, known and unknown.
	maxPieces = 64
	// maxSignatures bounds the signatures tried, over all values.
	maxSignatures = 16
	// A body may become decodedFactor times as long when its Content-Encoding is
	// undone, and minDecodedBytes in any case, but no more than maxDecodedBytes.
	decodedFactor   = 32
	minDecodedBytes = 1 << 20
	maxDecodedBytes = 8 << 20
	// maxEncodings bounds the codings stacked in a Content-Encoding.
	maxEncodings = 3
	// maxItems bounds the items that are verified one by one.
	maxItems = 1024
	// maxPublicKeyChecks bounds the public-key operations, over all entries.
	maxPublicKeyChecks = 1024
	// maxPasses bounds the bytes hashed, over all entries, to this many times
	// the body and passFloor, and to decodedPasses times a decoded body.
	maxPasses     = 64
	passFloor     = 64 << 10
	decodedPasses = 8
)

// What a file or a configuration may ask for.
const (
	// maxAlternatives bounds the alternatives under `signed`.
	maxAlternatives = 8
	// maxKeys bounds the keys of one set.
	maxKeys = 32
	// minRSABits and maxRSABits bound the modulus of an RSA key.
	minRSABits = 2048
	maxRSABits = 8192
)

// budget is what is left for one delivery. It is used by one goroutine.
type budget struct {
	bytes int // still to be hashed
	keys  int // public-key operations
}

func newBudget(body int) *budget {
	return &budget{bytes: maxPasses * (body + passFloor), keys: maxPublicKeyChecks}
}

// hash takes n bytes from the budget and reports whether they were there.
func (b *budget) hash(n int) bool {
	b.bytes -= n
	return b.bytes >= 0
}

// decoded adds what a body of n bytes after its Content-Encoding may cost.
func (b *budget) decoded(n int) { b.bytes += decodedPasses * n }

// key takes one public-key operation and reports whether it was there.
func (b *budget) key() bool {
	b.keys--
	return b.keys >= 0
}

// spent reports whether more was asked for than there was.
func (b *budget) spent() bool { return b.bytes < 0 || b.keys < 0 }
