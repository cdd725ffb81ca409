// SPDX-License-Identifier: Apache-2.0
// XXH3-128 with a seed, for the lengths that flow keys have: 4, 7, 13, 16, 19 and 37 bytes. Written from the xxHash
// specification (Collet, version 0.2); constants are its primes and the first words of its secret.
//
// A key is five words in memory order, zero beyond its length. The instruction set has no 128-bit product, so it is
// composed from four 64-bit products of halves.

#pragma once

#include "base.h"

#define PRIME32_2 0x85EBCA77ULL
#define PRIME64_1 0x9E3779B185EBCA87ULL
#define PRIME64_2 0xC2B2AE3D27D4EB4FULL
#define PRIME64_4 0x85EBCA77C2B2AE63ULL
#define PRIME_MX1 0x165667919E3779F9ULL
#define PRIME_MX2 0x9FB21C651E98DF25ULL

// Words of the secret, by offset in bytes.
#define SECRET_0 0xBE4BA423396CFEB8ULL
#define SECRET_8 0x1CAD21F72C81017CULL
#define SECRET_16 0xDB979083E96DD4DEULL
#define SECRET_24 0x1F67B3B7A4A44072ULL
#define SECRET_32 0x78E5C0CC4EE679CBULL
#define SECRET_40 0x2172FFCC7DD05A82ULL
#define SECRET_48 0x8E2443F7744608B8ULL
#define SECRET_56 0x4C263A81E69035E0ULL

struct words {
    __u64 low;
    __u64 high;
};

INLINE struct words multiply(__u64 a, __u64 b) {
    __u64 a_low = (__u32)a, a_high = a >> 32, b_low = (__u32)b, b_high = b >> 32;
    __u64 low = a_low * b_low, middle = a_high * b_low, cross;
    cross = (low >> 32) + (__u32)middle + a_low * b_high;
    struct words product = {
        .low = cross << 32 | (__u32)low,
        .high = (middle >> 32) + (cross >> 32) + a_high * b_high,
    };
    return product;
}

INLINE __u64 fold(__u64 a, __u64 b) {
    struct words product = multiply(a, b);
    return product.low ^ product.high;
}

INLINE __u64 avalanche(__u64 value) {
    value ^= value >> 37;
    value *= PRIME_MX1;
    return value ^ value >> 32;
}

// The word that begins `bytes` bytes after the beginning of `first`, 1 to 7; `second` follows `first`.
INLINE __u64 shifted(__u64 first, __u64 second, __u32 bytes) {
    return first >> (8 * bytes) | second << (64 - 8 * bytes);
}

INLINE struct words hash_4_to_8(__u32 first, __u32 last, __u32 length, __u64 seed) {
    seed ^= (__u64)__builtin_bswap32((__u32)seed) << 32;
    __u64 keyed = (first | (__u64)last << 32) ^ ((SECRET_16 ^ SECRET_24) + seed);
    struct words hash = multiply(keyed, PRIME64_1 + (length << 2));
    hash.high += hash.low << 1;
    hash.low ^= hash.high >> 3;
    hash.low ^= hash.low >> 35;
    hash.low *= PRIME_MX2;
    hash.low ^= hash.low >> 28;
    hash.high = avalanche(hash.high);
    return hash;
}

INLINE struct words hash_9_to_16(__u64 first, __u64 last, __u32 length, __u64 seed) {
    __u64 flip_low = (SECRET_32 ^ SECRET_40) - seed, flip_high = (SECRET_48 ^ SECRET_56) + seed;
    struct words product = multiply(first ^ last ^ flip_low, PRIME64_1);
    product.low += (__u64)(length - 1) << 54;
    last ^= flip_high;
    product.high += last + (__u64)(__u32)last * (PRIME32_2 - 1);
    product.low ^= __builtin_bswap64(product.high);
    struct words hash = multiply(product.low, PRIME64_2);
    hash.high += product.high * PRIME64_2;
    hash.low = avalanche(hash.low);
    hash.high = avalanche(hash.high);
    return hash;
}

// The hash of 17 to 128 bytes: its sums, and its end.
INLINE struct words hash_sums(struct words sums, __u32 length, __u64 seed) {
    struct words hash = {
        .low = avalanche(sums.low + sums.high),
        .high = -avalanche(sums.low * PRIME64_1 + sums.high * PRIME64_4 + (length - seed) * PRIME64_2),
    };
    return hash;
}

// The first 16 bytes, and the 16 bytes that end the key.
INLINE struct words mix_ends(struct words sums, const __u64 *key, __u64 end_0, __u64 end_1, __u64 seed) {
    sums.low += fold(key[0] ^ (SECRET_0 + seed), key[1] ^ (SECRET_8 - seed));
    sums.low ^= end_0 + end_1;
    sums.high += fold(end_0 ^ (SECRET_16 + seed), end_1 ^ (SECRET_24 - seed));
    sums.high ^= key[0] + key[1];
    return sums;
}

INLINE struct words hash_19(const __u64 *key, __u64 seed) {
    struct words sums = {.low = 19 * PRIME64_1, .high = 0};
    sums = mix_ends(sums, key, shifted(key[0], key[1], 3), shifted(key[1], key[2], 3), seed);
    return hash_sums(sums, 19, seed);
}

INLINE struct words hash_37(const __u64 *key, __u64 seed) {
    struct words sums = {.low = 37 * PRIME64_1, .high = 0};
    __u64 inner_0 = shifted(key[0], key[1], 5), inner_1 = shifted(key[1], key[2], 5);
    sums.low += fold(key[2] ^ (SECRET_32 + seed), key[3] ^ (SECRET_40 - seed));
    sums.low ^= inner_0 + inner_1;
    sums.high += fold(inner_0 ^ (SECRET_48 + seed), inner_1 ^ (SECRET_56 - seed));
    sums.high ^= key[2] + key[3];
    sums = mix_ends(sums, key, shifted(key[2], key[3], 5), shifted(key[3], key[4], 5), seed);
    return hash_sums(sums, 37, seed);
}

// The hash of a key. Lengths other than those of flow keys do not occur.
INLINE struct words hash_key(const __u64 *key, __u32 length, __u64 seed) {
    switch (length) {
    case 4: return hash_4_to_8(key[0], key[0], 4, seed);
    case 7: return hash_4_to_8(key[0], key[0] >> 24, 7, seed);
    case 13: return hash_9_to_16(key[0], shifted(key[0], key[1], 5), 13, seed);
    case 16: return hash_9_to_16(key[0], key[1], 16, seed);
    case 19: return hash_19(key, seed);
    default: return hash_37(key, seed);
    }
}

// The number of zeros before the first one; 64 for zero.
INLINE __u32 leading_zeros(__u64 value) {
    __u32 zeros = 0;
    if (!value) return 64;
    if (!(value >> 32)) zeros += 32, value <<= 32;
    if (!(value >> 48)) zeros += 16, value <<= 16;
    if (!(value >> 56)) zeros += 8, value <<= 8;
    if (!(value >> 60)) zeros += 4, value <<= 4;
    if (!(value >> 62)) zeros += 2, value <<= 2;
    return zeros + !(value >> 63);
}
