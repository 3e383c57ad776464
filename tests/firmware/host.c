/* A motor controller on a desk: edgeguard_motor.h with ideal motors, which reach what they are asked for at once,
 * and sensors that have no reading before the first motion.
 *
 * `host LINK_TIMEOUT_MS LATCH SESSION` plays a script: every line of stdin is "MS STATUS HEX"; time begins at the first
 * MS and then passes in steps of 1 ms. `host LINK_TIMEOUT_MS LATCH SESSION FD` serves the wire behind FD in real time
 * until it is killed. Both say on stdout what was applied and replied, and when. SESSION is the first one's number.
 */
#define _POSIX_C_SOURCE 200809L
#include "edgeguard_motor.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static eg_motor eg;
static uint32_t sessions;
static int wire = -1;

static uint32_t draw_session(void *user)
{
    return (*(uint32_t *)user)++;
}

static void apply(void *user, eg_action action, const float *axes)
{
    static const char *const names[] = {"", "move", "stop", "hold", "torque_off"};
    (void)user;
    printf("%lu %s", (unsigned long)eg.now_ms, names[action]);
    eg.status &= (uint8_t)~EG_MOVING;
    for (int axis = 0; axis < EG_AXES; axis++) {
        eg.measured[axis] = axes ? axes[axis] : 0 * eg.measured[axis]; /* NaN, no reading, stays one */
        if (eg.measured[axis] < 0 || eg.measured[axis] > 0)
            eg.status |= EG_MOVING;
        if (axes)
            printf(" %.9g", (double)axes[axis]);
    }
    putchar('\n');
}

static void take(uint8_t byte)
{
    uint16_t length = eg_receive(&eg, byte);
    if (length == 0)
        return;
    printf("%lu reply ", (unsigned long)eg.now_ms);
    for (uint16_t i = 0; i < length; i++)
        printf("%02x", eg.reply[i]);
    putchar('\n');
    fflush(stdout); /* it is on the record before anybody hears of it */
    if (wire >= 0 && write(wire, eg.reply, length) != length)
        exit(1);
}

static void play_script(void)
{
    static char hex[200000];
    unsigned long ms;
    unsigned status, byte;
    for (bool first = true; scanf("%lu %u %199999s", &ms, &status, hex) == 3; first = false) {
        if (first)
            eg_tick(&eg, (uint32_t)ms);
        while (eg.now_ms != (uint32_t)ms)
            eg_tick(&eg, eg.now_ms + 1);
        eg.status = (uint8_t)((eg.status & EG_MOVING) | status);
        eg_tick(&eg, eg.now_ms);
        for (const char *at = hex; sscanf(at, "%2x", &byte) == 1; at += 2)
            take((uint8_t)byte);
    }
}

static void serve_wire(void)
{
    struct pollfd ready = {.fd = wire, .events = POLLIN};
    for (;;) {
        struct timespec now;
        uint8_t bytes[256];
        poll(&ready, 1, 1);
        clock_gettime(CLOCK_MONOTONIC, &now);
        eg_tick(&eg, (uint32_t)(now.tv_sec * 1000 + now.tv_nsec / 1000000));
        if (ready.revents & POLLIN) {
            ssize_t length = read(wire, bytes, sizeof bytes);
            for (ssize_t i = 0; i < length; i++)
                take(bytes[i]);
        }
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    eg.link_timeout_ms = (uint16_t)atoi(argv[1]);
    eg.latch = atoi(argv[2]) != 0;
#ifdef EG_KEYED
    for (uint8_t i = 0; i < sizeof eg.key; i++) /* the key of the published vectors */
        eg.key[i] = i;
#endif
    sessions = (uint32_t)strtoul(argv[3], NULL, 10);
    eg.draw_session = draw_session;
    eg.apply = apply;
    eg.user = &sessions;
    eg_start(&eg);
    if (argc > 4) {
        wire = atoi(argv[4]);
        serve_wire();
    }
    play_script();
    return 0;
}
