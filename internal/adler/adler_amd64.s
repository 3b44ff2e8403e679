#include "textflag.h"

// How much a byte counts in the high half: as many times as bytes are left in
// its block, itself included.
DATA weights<>+0(SB)/8, $0x393a3b3c3d3e3f40
DATA weights<>+8(SB)/8, $0x3132333435363738
DATA weights<>+16(SB)/8, $0x292a2b2c2d2e2f30
DATA weights<>+24(SB)/8, $0x2122232425262728
DATA weights<>+32(SB)/8, $0x191a1b1c1d1e1f20
DATA weights<>+40(SB)/8, $0x1112131415161718
DATA weights<>+48(SB)/8, $0x090a0b0c0d0e0f10
DATA weights<>+56(SB)/8, $0x0102030405060708
GLOBL weights<>(SB), RODATA|NOPTR, $64

// func blocks(p *byte, n int) (sum, before, weighed uint64)
//
// Y0 sum, Y1 before: 4 lanes of 64 bits.
// Y2, Y3 weighed, of the first and of the second half of a block: 8 lanes of
// 32 bits each. A block adds at most 255*(64+63+62+61) = 63750 to a lane, so
// that 65536 blocks fit. A pair of weighed bytes, at most 255*(64+63) = 32385,
// fits into the 15 bits that VPMADDUBSW has.
TEXT ·blocks(SB), NOSPLIT, $0-40
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	VMOVDQU weights<>+0(SB), Y8
	VMOVDQU weights<>+32(SB), Y9
	VPCMPEQW Y10, Y10, Y10
	VPSRLW $15, Y10, Y10 // 16 words of 1
	VPXOR Y11, Y11, Y11
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3

next:
	VMOVDQU (SI), Y4
	VMOVDQU 32(SI), Y5
	VPADDQ Y0, Y1, Y1
	VPMADDUBSW Y8, Y4, Y6
	VPMADDUBSW Y9, Y5, Y7
	VPSADBW Y11, Y4, Y4
	VPSADBW Y11, Y5, Y5
	VPMADDWD Y10, Y6, Y6
	VPMADDWD Y10, Y7, Y7
	VPADDQ Y4, Y5, Y4
	VPADDD Y6, Y2, Y2
	VPADDD Y7, Y3, Y3
	VPADDQ Y4, Y0, Y0
	ADDQ $64, SI
	DECQ CX
	JNZ next

	// weighed to 4 lanes of 64 bits
	VPUNPCKLDQ Y11, Y2, Y4
	VPUNPCKHDQ Y11, Y2, Y5
	VPUNPCKLDQ Y11, Y3, Y6
	VPUNPCKHDQ Y11, Y3, Y7
	VPADDQ Y4, Y5, Y4
	VPADDQ Y6, Y7, Y6
	VPADDQ Y4, Y6, Y2

	VEXTRACTI128 $1, Y0, X4
	VEXTRACTI128 $1, Y1, X5
	VEXTRACTI128 $1, Y2, X6
	VPADDQ X4, X0, X0
	VPADDQ X5, X1, X1
	VPADDQ X6, X2, X2
	VPSHUFD $0xee, X0, X4 // the high half to the low
	VPSHUFD $0xee, X1, X5
	VPSHUFD $0xee, X2, X6
	VPADDQ X4, X0, X0
	VPADDQ X5, X1, X1
	VPADDQ X6, X2, X2
	MOVQ X0, sum+16(FP)
	MOVQ X1, before+24(FP)
	MOVQ X2, weighed+32(FP)
	VZEROUPPER
	RET
