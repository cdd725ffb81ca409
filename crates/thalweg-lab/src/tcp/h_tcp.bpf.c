// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// H-TCP as a congestion control of the kernel: the window grows faster, the longer the last congestion event is ago (Leith
// and Shorten, PFLDnet 2004; draft-leith-tcp-htcp-06, sections 2 and 3). It has the same formulas as H-TCP of the emulator.
// The increase is not scaled by the round-trip time.
//
// Kernel functions may be called only by programs with a licence compatible with the GPL, hence the second licence.
//
// Offsets of kernel structures are those of the running kernel: the loader relocates them by name.

#include <linux/bpf.h>

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define KERNEL __attribute__((preserve_access_index))
#define KERNEL_FUNCTION __attribute__((section(".ksyms")))

static __u64 (*bpf_ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;

// --- Kernel structures, as far as used --------------------------------------------------------------------

struct sock;

struct inet_connection_sock {
    __u64 icsk_ca_priv[13];
} KERNEL;

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    __u32 snd_una;
    __u32 snd_nxt;
    __u32 snd_cwnd;
    __u32 snd_ssthresh;
    __u32 prior_cwnd;
    __u32 max_packets_out;
} KERNEL;

struct ack_sample {
    __u32 pkts_acked;
    __s32 rtt_us;
} KERNEL;

// Grows the window by what was acknowledged, up to the threshold. Returns what is left.
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) KERNEL_FUNCTION;
// Grows the window by one segment for each `w` acknowledged.
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) KERNEL_FUNCTION;

// TCP_CA_Loss of enum tcp_ca_state: after a timeout.
#define STATE_LOSS 4

// --- State ------------------------------------------------------------------------------------------------

// Fixed-point numbers have this unit.
#define ONE 128u

// Delta_L in ms: the increase is Reno's for this long after congestion.
#define LOW_SPEED 1000u

// Bounds of the decrease factor: 0.5 and 0.8.
#define BETA_MIN (ONE / 2)
#define BETA_MAX 102u

// In icsk_ca_priv, at most 104 bytes.
struct h_tcp {
    __u64 last_congestion; // ns; at first the start of the connection
    __u64 round_start;     // ns
    __u32 round_end;       // the round ends when this is acknowledged
    __u32 round_acked;     // segments
    __u32 throughput;      // highest of a round since the last congestion event, in segments per second
    __u32 last_throughput; // of the epoch before
    __u32 min_rtt;         // us
    __u32 max_rtt;         // us, since the last congestion event
    __u32 beta;            // in ONE
    __u32 undo_beta;       // these before the last congestion event
    __u32 undo_max_rtt;
    __u32 undo_throughput;
    __u32 undo_last_throughput;
    __u32 padding;
    __u64 undo_last_congestion;
};

INLINE struct h_tcp *state(void *socket) {
    return (struct h_tcp *)((struct inet_connection_sock *)socket)->icsk_ca_priv;
}

// The increase in segments per round trip, in ONE: 1 at low speed, then 1 + 10 d + (d/2)^2 with d in seconds beyond, and
// scaled by 2 (1 - beta), so that the mean rate does not depend on beta.
INLINE __u64 alpha(const struct h_tcp *h, __u64 now) {
    __u64 beyond = (now - h->last_congestion) / 1000000;
    __u64 speed = ONE;
    // At an hour the increase is far beyond any window.
    if (beyond > 3600000)
        beyond = 3600000;
    if (beyond > LOW_SPEED) {
        beyond -= LOW_SPEED;
        speed += 10 * ONE * beyond / 1000 + ONE * beyond * beyond / 4000000;
    }
    speed = 2 * (ONE - h->beta) * speed / ONE;
    return speed < ONE ? ONE : speed;
}

// --- Operations -------------------------------------------------------------------------------------------

SECTION("struct_ops") int h_tcp_init(__u64 *arguments) {
    struct h_tcp *h = state((void *)arguments[0]);
    h->last_congestion = h->undo_last_congestion = h->round_start = bpf_ktime_get_ns();
    h->round_end = ((struct tcp_sock *)arguments[0])->snd_nxt;
    h->round_acked = 0;
    h->throughput = h->last_throughput = h->undo_throughput = h->undo_last_throughput = 0;
    h->min_rtt = ~0u;
    h->max_rtt = h->undo_max_rtt = 0;
    h->beta = h->undo_beta = BETA_MIN;
    return 0;
}

// Measures round-trip time and throughput.
SECTION("struct_ops") int h_tcp_pkts_acked(__u64 *arguments) {
    struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
    struct h_tcp *h = state((void *)arguments[0]);
    const struct ack_sample *sample = (const struct ack_sample *)arguments[1];
    __s32 rtt = sample->rtt_us;
    if (rtt > 0) {
        if ((__u32)rtt < h->min_rtt)
            h->min_rtt = rtt;
        if ((__u32)rtt > h->max_rtt)
            h->max_rtt = rtt;
    }
    h->round_acked += sample->pkts_acked;
    if ((__s32)(tp->snd_una - h->round_end) <= 0)
        return 0;
    __u64 now = bpf_ktime_get_ns();
    __u64 us = (now - h->round_start) / 1000;
    if (us > 0) {
        __u64 throughput = (__u64)h->round_acked * 1000000 / us;
        if (throughput > h->throughput)
            h->throughput = throughput;
    }
    h->round_start = now;
    h->round_end = tp->snd_nxt;
    h->round_acked = 0;
    return 0;
}

SECTION("struct_ops") int h_tcp_cong_avoid(__u64 *arguments) {
    struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
    struct h_tcp *h = state((void *)arguments[0]);
    __u32 acked = arguments[2];
    __u32 window = tp->snd_cwnd;
    // Only a window that limits the sender may grow; in slow start, half of it suffices.
    if (window < tp->snd_ssthresh) {
        if (2 * tp->max_packets_out <= window)
            return 0;
        acked = tcp_slow_start(tp, acked);
        if (acked == 0)
            return 0;
    } else if (tp->max_packets_out < window) {
        return 0;
    }
    window = tp->snd_cwnd;
    // Both in parts of a segment: with whole segments, a fast increase would be rounded up by a quarter.
    __u64 per_segment = (__u64)window * ONE * ONE / alpha(h, bpf_ktime_get_ns());
    tcp_cong_avoid_ai(tp, per_segment > 0 ? per_segment : 1, acked * ONE);
    return 0;
}

// Congestion: adapts beta. With steady throughput, the link stays busy while its queue drains, whose length is the
// difference between the longest and the shortest round trip.
SECTION("struct_ops") int h_tcp_ssthresh(__u64 *arguments) {
    struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
    struct h_tcp *h = state((void *)arguments[0]);
    h->undo_last_congestion = h->last_congestion;
    h->undo_beta = h->beta;
    h->undo_max_rtt = h->max_rtt;
    h->undo_throughput = h->throughput;
    h->undo_last_throughput = h->last_throughput;
    __u64 now_at = h->throughput, last = h->last_throughput;
    __u64 change = now_at > last ? now_at - last : last - now_at;
    __u32 beta = BETA_MIN;
    if (5 * change <= last && h->max_rtt > 0) {
        __u64 ratio = (__u64)h->min_rtt * ONE / h->max_rtt;
        beta = ratio < BETA_MIN ? BETA_MIN : ratio > BETA_MAX ? BETA_MAX : ratio;
    }
    h->beta = beta;
    h->last_throughput = h->throughput;
    h->throughput = 0;
    h->max_rtt = 0;
    h->last_congestion = bpf_ktime_get_ns();
    __u32 threshold = (__u64)tp->snd_cwnd * beta / ONE;
    return threshold > 2 ? threshold : 2;
}

SECTION("struct_ops") int h_tcp_set_state(__u64 *arguments) {
    if ((__u8)arguments[1] == STATE_LOSS)
        state((void *)arguments[0])->beta = BETA_MIN;
    return 0;
}

// The congestion event was a false alarm.
SECTION("struct_ops") int h_tcp_undo_cwnd(__u64 *arguments) {
    struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
    struct h_tcp *h = state((void *)arguments[0]);
    h->last_congestion = h->undo_last_congestion;
    h->beta = h->undo_beta;
    h->max_rtt = h->undo_max_rtt;
    h->throughput = h->undo_throughput;
    h->last_throughput = h->undo_last_throughput;
    __u32 window = tp->snd_cwnd, prior = tp->prior_cwnd;
    return window > prior ? window : prior;
}

char licence[] SECTION("license") = "GPL v2";
