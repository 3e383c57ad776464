/* edgeguard_motor.h: the motor controller's side of edgeguard's wire, codec "cobs". C99, or C++11 for an Arduino.
 *
 * It takes bytes, answers the handshake, and tells your code what to do: follow these axes, hold, or cut the torque.
 * It makes your motor controller stop by itself when a command's life ends or the link falls silent, whatever became
 * of the computer. No heap, no libc but memcpy, no clock, no interrupt: bytes and milliseconds are handed in. Two axes
 * take 136 bytes of RAM and 1.9 kB of code (x86-64, -Os). README.md beside this file describes the frames;
 * tests/vectors/cobs.json has examples of them.
 *
 * With EG_KEYED defined, every frame is authenticated by a key that both sides have (24 bytes and 0.5 kB more): set
 * eg.key, and [link] key_file on the computer. draw_session must then be unpredictable.
 *
 *     #define EG_AXES 2  // as many as the configuration has [[axis]], in the same order
 *     #include "edgeguard_motor.h"
 *
 *     static eg_motor eg;
 *
 *     int main(void)
 *     {
 *         eg.link_timeout_ms = 80;
 *         eg.draw_session = my_random;
 *         eg.apply = my_apply;
 *         eg_start(&eg);
 *         for (;;) {  // every few milliseconds
 *             eg.measured[0] = wheel_speed();
 *             eg.status = (uint8_t)((is_moving() ? EG_MOVING : 0) | (button_is_pressed() ? EG_ESTOP : 0));
 *             eg_tick(&eg, millis());  // first: an old command ends before a new one is read
 *             while (uart_has_byte()) {
 *                 uint16_t n = eg_receive(&eg, uart_read());
 *                 if (n > 0)
 *                     uart_write(eg.reply, n);
 *             }
 *         }
 *     }
 *
 * A life begins at the eg_tick before its command's last byte and ends at an eg_tick: one pass of your loop is the
 * error either way. A loop that hangs stops nothing, so turn on the hardware watchdog. Call everything from one place,
 * the loop or one interrupt. Licence: Apache-2.0.
 */
#ifndef EDGEGUARD_MOTOR_H
#define EDGEGUARD_MOTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef EG_KEYED
#include "edgeguard_siphash.h"
#endif

#if !defined(EG_AXES) || EG_AXES < 1 || EG_AXES > 255
#error "define EG_AXES, the number of axes (1 to 255), before including edgeguard_motor.h"
#endif

/* What apply is asked for; the values are those on the wire. */
typedef enum {
    EG_MOVE = 1,      /* follow the axes */
    EG_STOP = 2,      /* follow the axes, which lead towards rest: nothing gets faster by it */
    EG_HOLD = 3,      /* come to rest at your own deceleration, and stay there under power */
    EG_TORQUE_OFF = 4 /* cut the power and coast */
} eg_action;

/* The bits of eg.status and of an echo. */
enum {
    EG_MOVING = 1,
    EG_EXPIRED = 2, /* a life or the link time-out ended, and nothing has been taken up since */
    EG_FAULT = 4,
    EG_ESTOP = 8,
    EG_LATCHED = 16 /* no move before the next handshake */
};

/* What is in a body's first two bytes. */
enum { EG__VERSION = 1, EG__IS_COMMAND = 1, EG__IS_ECHO = 2, EG__IS_HELLO = 3, EG__IS_WELCOME = 4 };

/* Lengths in bytes. COBS adds one byte to every 254 or part of them. */
#define EG__COBS(length) ((length) + ((length) + 253) / 254)
enum {
#ifdef EG_KEYED
    EG__CHECK = EG__TAG,
#else
    EG__CHECK = 4,
#endif
    EG__HELLO = 8,
    EG__WELCOME = 14,
    EG__COMMAND = 12 + 4 * EG_AXES,
    EG__ECHO = 16 + 4 * EG_AXES,
    EG__LONGEST = EG__COBS(EG__COMMAND + EG__CHECK)
};

typedef struct {
    /* Yours, before eg_start. */
    uint16_t link_timeout_ms; /* without a command for so long: stop. [link] timeout_ms */
    bool latch;               /* after a stop of its own, move only after a new handshake */
    bool holds[EG_AXES];      /* an axis that rests where it is, as a gripper; others rest at 0 */
#ifdef EG_KEYED
    uint8_t key[16]; /* as the key file has it, first byte first */
#endif
    void *user; /* handed to both of: */
    uint32_t (*draw_session)(void *user); /* a number that no earlier session is likely to have had: no constant */
    void (*apply)(void *user, eg_action action, const float *axes); /* EG_AXES axes; NULL unless move or stop */

    /* Yours, kept up to date: what the next echo says. A fault or an e-stop also stops, at the next eg_tick. */
    float measured[EG_AXES]; /* in the axis' unit; eg_no_reading() where there is none */
    uint8_t status;          /* EG_MOVING | EG_FAULT | EG_ESTOP, as they are now */

    /* Yours to read. */
    uint8_t reply[EG__COBS(EG__ECHO + EG__CHECK) + 2]; /* until the next eg_receive */
    uint16_t dropped;                                /* damaged frames, wraps: a look at the wiring */
    uint8_t flags;                                   /* EG_EXPIRED | EG_LATCHED */

    /* Its own. */
    uint8_t frame[EG__LONGEST + 1]; /* one more than the longest is enough to know that it is too long */
    uint16_t length;
    uint32_t now_ms;
    uint32_t nonce;
    uint32_t session;  /* 0: none yet */
    bool begun;        /* a command of this session has been accepted: */
    uint16_t sequence; /* its number, */
    uint32_t since_ms; /* when, */
    uint16_t life_ms;  /* and for how long */
    bool standing;     /* that time has not ended */
    bool torque_is_off;
    uint8_t tripped; /* EG_FAULT | EG_ESTOP, as the last eg_tick saw them */
} eg_motor;

typedef char eg__float_has_32_bits[sizeof(float) == 4 ? 1 : -1];

/* ---- numbers on the wire: little-endian, floats as IEEE 754 ---- */

static inline uint16_t eg__u16(const uint8_t *at)
{
    return (uint16_t)(at[0] | (uint16_t)at[1] << 8);
}

static inline uint32_t eg__u32(const uint8_t *at)
{
    return eg__u16(at) | (uint32_t)eg__u16(at + 2) << 16;
}

static inline uint8_t *eg__put(uint8_t *at, uint32_t value, uint8_t bytes)
{
    for (; bytes > 0; bytes--, value >>= 8)
        *at++ = (uint8_t)(value & 0xFF);
    return at;
}

static inline float eg__float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline bool eg__is_finite(uint32_t bits)
{
    return (bits & 0x7F800000UL) != 0x7F800000UL;
}

/* NaN, without math.h: a sensor that says nothing says this, never 0. */
static inline float eg_no_reading(void)
{
    return eg__float(0x7FC00000UL);
}

#ifndef EG_KEYED
/* CRC-32 of Ethernet and zlib, bit by bit, without a table: some 200 cycles a byte on an 8-bit AVR (reckoned). */
static inline uint32_t eg__crc(const uint8_t *data, uint16_t length)
{
    uint32_t crc = 0xFFFFFFFFUL;
    while (length-- > 0) {
        crc ^= *data++;
        for (uint8_t bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xEDB88320UL : crc >> 1;
    }
    return ~crc;
}
#endif

/* What proves the `length` bytes of a body: the key's tag, or the CRC. `check` has EG__CHECK bytes. */
static inline void eg__make_check(const eg_motor *eg, const uint8_t *body, uint16_t length, uint8_t *check)
{
#ifdef EG_KEYED
    eg__siphash(eg->key, body, length, check);
#else
    (void)eg;
    eg__put(check, eg__crc(body, length), EG__CHECK);
#endif
}

/* ---- frames: 00 | COBS(body | check) | 00 ---- */

/* Undo COBS in place and verify the check. The body's length; 0 when the frame is damaged, or not by our guard. */
static inline uint16_t eg__unpack(const eg_motor *eg, uint8_t *frame, uint16_t length)
{
    uint8_t check[EG__CHECK], differs = 0;
    uint16_t in = 0, out = 0;
    while (in < length) {
        uint8_t code = frame[in++];
        if ((uint16_t)(code - 1) > (uint16_t)(length - in))
            return 0;
        for (uint8_t left = code; left > 1; left--)
            frame[out++] = frame[in++];
        if (code != 0xFF && in < length)
            frame[out++] = 0;
    }
    if (out <= EG__CHECK)
        return 0;
    out = (uint16_t)(out - EG__CHECK);
    eg__make_check(eg, frame, out, check);
    for (uint8_t i = 0; i < EG__CHECK; i++) /* all of it, so that the time tells nothing */
        differs |= check[i] ^ frame[out + i];
    return differs ? 0 : out;
}

/* Make the reply of the body that ends at `end`, which has room for the check. How many bytes are to be sent. */
static inline uint16_t eg__pack(eg_motor *eg, uint8_t *body, uint8_t *end)
{
    uint8_t *out = eg->reply, *code;
    eg__make_check(eg, body, (uint16_t)(end - body), end);
    end += EG__CHECK;
    *out++ = 0;
    code = out++;
    *code = 1;
    for (; body < end; body++) {
        if (*code == 0xFF) { /* a full block stands for its bytes alone, every other one for a zero too */
            code = out++;
            *code = 1;
        }
        if (*body != 0) {
            *out++ = *body;
            ++*code;
        } else {
            code = out++;
            *code = 1;
        }
    }
    *out++ = 0;
    return (uint16_t)(out - eg->reply);
}

static inline uint8_t *eg__header(uint8_t *body, uint8_t kind, uint8_t detail)
{
    body[0] = EG__VERSION;
    body[1] = kind;
    body[2] = detail;
    body[3] = EG_AXES;
    return body + 4;
}

/* ---- what it does ---- */

/* Its own stop. Nobody has to renew it, and it does not restore a torque that is off. */
static inline void eg__rest(eg_motor *eg)
{
    eg->standing = false;
    if (!eg->torque_is_off)
        eg->apply(eg->user, EG_HOLD, NULL);
}

/* A hello: draw a session, unless this is the same question again because our answer was lost. */
static inline uint16_t eg__greet(eg_motor *eg, uint32_t nonce, bool fits)
{
    uint8_t body[EG__WELCOME + EG__CHECK], *at;
    if (fits && (eg->session == 0 || nonce != eg->nonce)) {
        if (eg->standing)
            eg__rest(eg);
        eg->session = eg->draw_session(eg->user);
        if (eg->session == 0)
            eg->session = 1;
        eg->nonce = nonce;
        eg->begun = false;
        eg->flags = 0;
    }
    at = eg__header(body, EG__IS_WELCOME, 0);
    at = eg__put(at, nonce, 4);
    at = eg__put(at, fits ? eg->session : 0, 4);
    at = eg__put(at, eg->link_timeout_ms, 2);
    return eg__pack(eg, body, at);
}

static inline uint16_t eg__echo(eg_motor *eg)
{
    uint8_t flags = (uint8_t)(eg->flags | (eg->status & (EG_MOVING | EG_FAULT | EG_ESTOP)));
    uint8_t body[EG__ECHO + EG__CHECK], *at;
    at = eg__header(body, EG__IS_ECHO, flags);
    at = eg__put(at, eg->session, 4);
    at = eg__put(at, eg->sequence, 2);
    at = eg__put(at, eg->life_ms, 2);
    at = eg__put(at, eg->now_ms, 4);
    for (uint8_t axis = 0; axis < EG_AXES; axis++) {
        uint32_t bits;
        memcpy(&bits, &eg->measured[axis], sizeof bits);
        at = eg__put(at, bits, 4);
    }
    return eg__pack(eg, body, at);
}

/* False when an axis is not finite. */
static inline bool eg__read_axes(float *axes, const uint8_t *at)
{
    for (uint8_t axis = 0; axis < EG_AXES; axis++, at += 4) {
        if (!eg__is_finite(eg__u32(at)))
            return false;
        axes[axis] = eg__float(eg__u32(at));
    }
    return true;
}

/* As far towards `goal` as that leads towards rest. Without a reading that is rest itself. */
static inline float eg__ease(float now, float goal)
{
    if (now > 0)
        return goal < 0 ? 0 : goal < now ? goal : now;
    if (now < 0)
        return goal > 0 ? 0 : goal > now ? goal : now;
    return 0;
}

/* A sound command: accept it if it is of this session and newer (RFC 1982), obey it unless something forbids. */
static inline uint16_t eg__take(eg_motor *eg, eg_action action, float *axes)
{
    uint16_t sequence = eg__u16(eg->frame + 8), life_ms = eg__u16(eg->frame + 10);
    uint16_t ahead = (uint16_t)(sequence - eg->sequence);
    bool tripped = eg->status & (EG_FAULT | EG_ESTOP);

    if (eg->session == 0 || eg__u32(eg->frame + 4) != eg->session)
        return 0;
    if (eg->begun && (ahead == 0 || ahead >= 0x8000U))
        return 0;
    eg->begun = eg->standing = true;
    eg->sequence = sequence;
    eg->since_ms = eg->now_ms;
    eg->life_ms = life_ms < eg->link_timeout_ms ? life_ms : eg->link_timeout_ms;
    if (action == EG_MOVE && (tripped || eg->flags & EG_LATCHED))
        return eg__echo(eg);
    if (action == EG_STOP && tripped)
        action = EG_HOLD;
    if (action == EG_STOP)
        for (uint8_t axis = 0; axis < EG_AXES; axis++)
            if (!eg->holds[axis])
                axes[axis] = eg__ease(eg->measured[axis], axes[axis]);
    eg->flags &= EG_LATCHED;
    eg->torque_is_off = action == EG_TORQUE_OFF;
    eg->apply(eg->user, action, action == EG_MOVE || action == EG_STOP ? axes : NULL);
    return eg__echo(eg);
}

/* ---- what you call ---- */

/* Once, after your fields are set. The motors are taken to be at rest. */
static inline void eg_start(eg_motor *eg)
{
    eg->status = eg->flags = eg->tripped = 0;
    eg->length = eg->dropped = 0;
    eg->session = eg->now_ms = 0;
    eg->begun = eg->standing = eg->torque_is_off = false;
    for (uint8_t axis = 0; axis < EG_AXES; axis++)
        eg->measured[axis] = eg_no_reading();
}

/* Let time pass. `now_ms` may wrap at 2**32. Calls `apply` when a life, the link or the machine makes it stop. */
static inline void eg_tick(eg_motor *eg, uint32_t now_ms)
{
    uint8_t trips = eg->status & (EG_FAULT | EG_ESTOP);
    eg->now_ms = now_ms;
    if (eg->standing && (uint32_t)(now_ms - eg->since_ms) >= eg->life_ms) {
        eg__rest(eg);
        eg->flags |= eg->latch ? EG_EXPIRED | EG_LATCHED : EG_EXPIRED;
    }
    if (trips & ~eg->tripped)
        eg__rest(eg);
    eg->tripped = trips;
}

/* Take one byte from the wire. So many bytes of eg->reply are then to be sent: 0, until a frame asks for an answer. */
static inline uint16_t eg_receive(eg_motor *eg, uint8_t byte)
{
    uint8_t *frame = eg->frame;
    uint16_t length = eg->length;
    float axes[EG_AXES];
    if (byte != 0) {
        if (length < sizeof eg->frame)
            frame[eg->length++] = byte;
        return 0;
    }
    eg->length = 0;
    if (length == 0)
        return 0; /* between two frames */
    length = length > EG__LONGEST ? 0 : eg__unpack(eg, frame, length);
    if (length == EG__HELLO && frame[0] == EG__VERSION && frame[1] == EG__IS_HELLO)
        return eg__greet(eg, eg__u32(frame + 4), frame[3] == EG_AXES);
    if (length == EG__COMMAND && frame[0] == EG__VERSION && frame[1] == EG__IS_COMMAND && frame[3] == EG_AXES) {
        uint8_t action = frame[2];
        if (action >= EG_MOVE && action <= EG_TORQUE_OFF && eg__read_axes(axes, frame + 12))
            return eg__take(eg, (eg_action)action, axes);
    }
    eg->dropped++;
    return 0;
}

#endif
