/* edgeguard_siphash.h: SipHash-2-4, for edgeguard_motor.h with EG_KEYED. C99 or C++11, no heap, no libc but memcpy.
 *
 * Eight bytes that only the holder of a 16-byte key can make of a message: Aumasson and Bernstein, "SipHash: a fast
 * short-input PRF" (2012). Licence: Apache-2.0.
 */
#ifndef EDGEGUARD_SIPHASH_H
#define EDGEGUARD_SIPHASH_H

#include <stdint.h>
#include <string.h>

enum { EG__TAG = 8 };

typedef struct {
    uint64_t a, b, c, d;
} eg__sip;

static inline uint64_t eg__u64(const uint8_t *at)
{
    uint64_t value = 0;
    for (uint8_t i = 8; i > 0; i--)
        value = value << 8 | at[i - 1];
    return value;
}

static inline uint64_t eg__turn(uint64_t value, uint8_t left)
{
    return value << left | value >> (64 - left);
}

static inline void eg__rounds(eg__sip *v, uint8_t count)
{
    for (; count > 0; count--) {
        v->a += v->b;
        v->c += v->d;
        v->b = eg__turn(v->b, 13) ^ v->a;
        v->d = eg__turn(v->d, 16) ^ v->c;
        v->a = eg__turn(v->a, 32);
        v->a += v->d;
        v->c += v->b;
        v->d = eg__turn(v->d, 21) ^ v->a;
        v->b = eg__turn(v->b, 17) ^ v->c;
        v->c = eg__turn(v->c, 32);
    }
}

static inline void eg__absorb(eg__sip *v, uint64_t word)
{
    v->d ^= word;
    eg__rounds(v, 2);
    v->a ^= word;
}

/* The tag of a message, least significant byte first. */
static inline void eg__siphash(const uint8_t *key, const uint8_t *message, uint16_t length, uint8_t *tag)
{
    uint64_t k0 = eg__u64(key), k1 = eg__u64(key + 8), result;
    uint8_t last[8] = {0}, rest = (uint8_t)(length % 8);
    eg__sip v;
    v.a = k0 ^ 0x736F6D6570736575ULL;
    v.b = k1 ^ 0x646F72616E646F6DULL;
    v.c = k0 ^ 0x6C7967656E657261ULL;
    v.d = k1 ^ 0x7465646279746573ULL;
    for (uint16_t at = 0; at + 8 <= length; at = (uint16_t)(at + 8))
        eg__absorb(&v, eg__u64(message + at));
    memcpy(last, message + (length - rest), rest);
    last[7] = (uint8_t)(length & 0xFF);
    eg__absorb(&v, eg__u64(last));
    v.c ^= 0xFF;
    eg__rounds(&v, 4);
    result = v.a ^ v.b ^ v.c ^ v.d;
    for (uint8_t i = 0; i < EG__TAG; i++, result >>= 8)
        tag[i] = (uint8_t)(result & 0xFF);
}

#endif
