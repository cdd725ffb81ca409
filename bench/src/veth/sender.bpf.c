// SPDX-License-Identifier: Apache-2.0
// Sends frames of many TCP flows to an interface. It runs on live frames (BPF_F_TEST_XDP_LIVE_FRAMES): writes the headers of
// the next flow, advances its sequence number by the payload, and redirects the frame. It drops frames that come too early, which
// gives a constant rate.

#include "../../../crates/thalweg-dataplane/src/kernel/base.h"

#define FLOWS 16384 // A power of two, at least the flows of a benchmark.

#define PATIENCE 1000000 // Nanoseconds: a sender that is late by more does not catch up.

static __u64 (*bpf_ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static long (*bpf_redirect)(__u32 interface, __u64 flags) = (void *)BPF_FUNC_redirect;

struct flow {
    __u8 addresses[12]; // Ethernet: destination, source.
    __u32 source;
    __u32 destination;
    __u16 source_port;
    __u16 destination_port;
    __u32 sequence; // In the order of the host.
    __u32 padding;
};

struct setting_value {
    __u32 interface;
    __u32 flows;
    __u32 payload; // Bytes.
    __u32 next;
    __u64 interval; // Nanoseconds between two frames.
    __u64 due;
    __u64 sent;
};

struct {
    NUMBER(type, BPF_MAP_TYPE_ARRAY);
    NUMBER(max_entries, 1);
    NUMBER(map_flags, BPF_F_MMAPABLE);
    TYPE(key, __u32);
    TYPE(value, struct setting_value);
} setting SECTION(".maps");

struct {
    NUMBER(type, BPF_MAP_TYPE_ARRAY);
    NUMBER(max_entries, FLOWS);
    NUMBER(map_flags, BPF_F_MMAPABLE);
    TYPE(key, __u32);
    TYPE(value, struct flow);
} flows SECTION(".maps");

struct headers {
    __u8 addresses[12];
    __u16 type;
    __u8 before_addresses[12];
    __u32 source;
    __u32 destination;
    __u16 source_port;
    __u16 destination_port;
    __u32 sequence;
} __attribute__((packed));

SECTION("xdp")
int send_frame(struct xdp_md *frame) {
    struct headers *headers = (void *)(long)frame->data;
    __u32 zero = 0;
    struct setting_value *values = bpf_map_lookup_elem(&setting, &zero);
    if (!values || (void *)(headers + 1) > (void *)(long)frame->data_end) return XDP_ABORTED;
    __u64 now = bpf_ktime_get_ns();
    if (now < values->due) return XDP_DROP;
    values->due = (values->due + PATIENCE < now ? now : values->due) + values->interval;
    values->sent++;
    __u32 number = values->next++;
    if (values->next >= values->flows) values->next = 0;
    struct flow *flow = bpf_map_lookup_elem(&flows, &number);
    if (!flow) return XDP_ABORTED;
    __builtin_memcpy(headers->addresses, flow->addresses, sizeof flow->addresses);
    headers->source = flow->source;
    headers->destination = flow->destination;
    headers->source_port = flow->source_port;
    headers->destination_port = flow->destination_port;
    headers->sequence = __builtin_bswap32(flow->sequence);
    flow->sequence += values->payload;
    return bpf_redirect(values->interface, 0);
}

char licence[] SECTION("license") = "Apache-2.0";
