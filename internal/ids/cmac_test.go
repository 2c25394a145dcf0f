package ids

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMACAgreesWithRFC4493 compares subkeys and codes with section 4 of the RFC.
func TestMACAgreesWithRFC4493(t *testing.T) {
	t.Parallel()
	key, err := ParseKey("2b7e151628aed2a6abf7158809cf4f3c")
	require.NoError(t, err)
	s := New(Text, key)
	require.Equal(t, "fbeed618357133667c85e08f7236a8de", hex.EncodeToString(s.macs.whole[:]))
	require.Equal(t, "f7ddac306ae266ccf90bc11ee46d513b", hex.EncodeToString(s.macs.padded[:]))

	message, err := hex.DecodeString("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51" +
		"30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710")
	require.NoError(t, err)
	p := s.NewParser()
	for length, want := range map[int]string{
		0:  "bb1d6929e95937287fa37d129b756746",
		16: "070a16b46b4d4144f79bdd9dd04a287c",
		40: "dfa66747de9ae63030ca32611497c827",
		64: "51f0bebf7e3b9d92fc49741779363cfe",
	} {
		p.mac(message[:length])
		require.Equal(t, want, hex.EncodeToString(p.buffer[:]), "%d bytes", length)
	}
}

// TestFactorsHaveInverses holds the constants of unmix.
func TestFactorsHaveInverses(t *testing.T) {
	t.Parallel()
	one, two := uint64(factor1), uint64(factor2)
	require.Equal(t, uint64(1), one*inverse1)
	require.Equal(t, uint64(1), two*inverse2)
}
