// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DCTCP as a congestion control of the kernel (RFC 8257): the window shrinks by half of the share of marked segments, which is
// averaged over round trips. The kernel detects marks and losses, and reduces the window to the threshold once per round trip.
//
// Kernel functions may be called only by programs with a licence compatible with the GPL, hence the second licence.
//
// Offsets of kernel structures are those of the running kernel: the loader relocates them by name.

#include <linux/bpf.h>

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define KERNEL __attribute__((preserve_access_index))
#define KERNEL_FUNCTION __attribute__((section(".ksyms")))

static long (*bpf_tcp_send_ack)(void *tp, __u32 rcv_nxt) = (void *)BPF_FUNC_tcp_send_ack;

// --- Kernel structures, as far as used --------------------------------------------------------------------

struct inet_connection_sock {
    struct {
        __u8 pending;
    } icsk_ack;
    __u64 icsk_ca_priv[13];
} KERNEL;

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    __u32 rcv_nxt;
    __u32 snd_una;
    __u32 snd_nxt;
    __u32 snd_cwnd;
    __u32 snd_ssthresh;
    __u32 prior_cwnd;
    __u32 delivered;
    __u32 delivered_ce;
    __u8 ecn_flags;
} KERNEL;

// Slow start and congestion avoidance of Reno.
extern void tcp_reno_cong_avoid(void *sk, __u32 ack, __u32 acked) KERNEL_FUNCTION;

// enum tcp_ca_state: after a loss that acknowledgements revealed; after a timeout.
#define STATE_RECOVERY 3
#define STATE_LOSS 4

// enum tcp_ca_event: a segment arrived without and with the mark CE.
#define EVENT_NOT_MARKED 4
#define EVENT_MARKED 5

// Acknowledge with ECN-Echo, in ecn_flags.
#define ECHO 4

// In icsk_ack.pending: the timer of a delayed acknowledgement runs; acknowledge at once.
#define ACK_TIMER 2
#define ACK_NOW 16

// --- State ------------------------------------------------------------------------------------------------

// alpha has this unit; it starts at 1, and each round trip counts for 1/16 (RFC 8257, section 4.2).
#define ONE 1024u
#define GAIN_SHIFT 4

// In icsk_ca_priv.
struct dctcp {
    // Of the sender.
    __u32 alpha;        // share of marked segments, in ONE
    __u32 round_end;    // the round ends when this is acknowledged
    __u32 delivered;    // segments, at the start of the round
    __u32 delivered_ce; // marked ones
    // Of the receiver.
    __u32 received;  // what was received in order, with the latest segment
    __u32 is_marked; // whether the latest segment was marked
};

INLINE struct dctcp *state(void *socket) {
    return (struct dctcp *)((struct inet_connection_sock *)socket)->icsk_ca_priv;
}

INLINE void start_round(struct tcp_sock *tp, struct dctcp *d) {
    d->round_end = tp->snd_nxt;
    d->delivered = tp->delivered;
    d->delivered_ce = tp->delivered_ce;
}

INLINE void set_echo(struct tcp_sock *tp, __u32 is_marked) {
    if (is_marked)
        tp->ecn_flags |= ECHO;
    else
        tp->ecn_flags &= ~ECHO;
}

// --- Operations -------------------------------------------------------------------------------------------

SECTION("struct_ops") int dctcp_init(__u64 *arguments) {
    struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
    struct dctcp *d = state(tp);
    d->alpha = ONE;
    d->received = tp->rcv_nxt;
    d->is_marked = 0;
    start_round(tp, d);
    return 0;
}

// Updates alpha once per round trip (section 3.3, steps 1 to 7), from segments instead of bytes.
SECTION("struct_ops") int dctcp_in_ack_event(__u64 *arguments) {
    struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
    struct dctcp *d = state(tp);
    if ((__s32)(tp->snd_una - d->round_end) < 0)
        return 0;
    __u32 delivered = tp->delivered - d->delivered;
    __u32 marked = tp->delivered_ce - d->delivered_ce;
    __u32 alpha = d->alpha;
    // Without marks alpha ends at 0, which a shift alone would not reach.
    __u32 decay = alpha >> GAIN_SHIFT;
    alpha -= decay > 0 ? decay : alpha > 0;
    if (marked > 0) {
        alpha += (__u64)marked * (ONE >> GAIN_SHIFT) / (delivered > 0 ? delivered : 1);
        if (alpha > ONE)
            alpha = ONE;
    }
    d->alpha = alpha;
    start_round(tp, d);
    return 0;
}

SECTION("struct_ops") int dctcp_cong_avoid(__u64 *arguments) {
    tcp_reno_cong_avoid((void *)arguments[0], arguments[1], arguments[2]);
    return 0;
}

// The threshold after a mark (step 9). A loss sets its own, in dctcp_set_state.
SECTION("struct_ops") int dctcp_ssthresh(__u64 *arguments) {
    struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
    __u32 window = tp->snd_cwnd;
    __u32 threshold = window - ((__u64)window * state(tp)->alpha / ONE) / 2;
    return threshold > 2 ? threshold : 2;
}

// A loss halves the window (section 3.5).
SECTION("struct_ops") int dctcp_set_state(__u64 *arguments) {
    struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
    __u8 next = (__u8)arguments[1];
    if (next == STATE_LOSS || next == STATE_RECOVERY) {
        __u32 threshold = tp->snd_cwnd / 2;
        tp->snd_ssthresh = threshold > 2 ? threshold : 2;
    }
    return 0;
}

// The echo tells marked segments from others exactly (section 3.2): before a change, what is received but not acknowledged is
// acknowledged with the former mark.
SECTION("struct_ops") int dctcp_cwnd_event(__u64 *arguments) {
    struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
    struct dctcp *d = state(tp);
    __u32 event = (__u32)arguments[1];
    if (event != EVENT_NOT_MARKED && event != EVENT_MARKED)
        return 0;
    __u32 is_marked = event == EVENT_MARKED;
    if (is_marked != d->is_marked) {
        if (tp->inet_conn.icsk_ack.pending & ACK_TIMER) {
            set_echo(tp, d->is_marked);
            bpf_tcp_send_ack(tp, d->received);
        }
        tp->inet_conn.icsk_ack.pending |= ACK_NOW;
    }
    d->received = tp->rcv_nxt;
    d->is_marked = is_marked;
    set_echo(tp, is_marked);
    return 0;
}

// The congestion event was a false alarm.
SECTION("struct_ops") int dctcp_undo_cwnd(__u64 *arguments) {
    struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
    __u32 window = tp->snd_cwnd, prior = tp->prior_cwnd;
    return window > prior ? window : prior;
}

char licence[] SECTION("license") = "GPL v2";
