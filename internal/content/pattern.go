package content

import (
	"encoding/binary"
	"sync"
)

// pattern returns the bytes that all files share; nobody may write to them.
// It is the one package-level value here, because it is a constant in all but
// form: too large for the source, the same in every process, made when first
// asked for (some 0.2 ms) and never changed. To hand it around would put a
// parameter on Fill and everything above it, and a second copy into memory
// for each owner.
var pattern = sync.OnceValue(makePattern) //nolint:gochecknoglobals // a computed table, see above

func makePattern() []byte {
	p := make([]byte, PatternSize+8)
	for i := uint64(0); 8*i < PatternSize; i++ {
		binary.LittleEndian.PutUint64(p[8*i:], output(patternStart, i+1))
	}
	return p[:PatternSize:PatternSize]
}
