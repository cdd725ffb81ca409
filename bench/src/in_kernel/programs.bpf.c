// SPDX-License-Identifier: Apache-2.0
// Programs of the benchmark `in-kernel`. A test run repeats one frame, so each program first writes the next 5-tuple of the
// traffic into its headers; `bench_pass` does only that.

#include "../../../crates/thalweg-dataplane/src/kernel/sketch.h"

#include "../../peers/ebpf-sketches/nitrosketch.h"

struct tuple {
    __u32 source;
    __u32 destination;
    __u16 source_port;
    __u16 destination_port;
    __u32 protocol;
};

struct cursor_value {
    __u64 next;
    __u64 mask;  // Tuples, less one.
    __u64 limit; // The last byte at which a tuple may begin.
};

struct {
    NUMBER(type, BPF_MAP_TYPE_ARRAY);
    NUMBER(max_entries, 1);
    NUMBER(map_flags, BPF_F_MMAPABLE);
    TYPE(key, __u32);
    NUMBER(value_size, 16777216);
} traffic SECTION(".maps");

struct {
    NUMBER(type, BPF_MAP_TYPE_ARRAY);
    NUMBER(max_entries, 1);
    NUMBER(map_flags, BPF_F_MMAPABLE);
    TYPE(key, __u32);
    TYPE(value, struct cursor_value);
} cursors SECTION(".maps");

struct flow {
    __u32 source;
    __u32 destination;
    __u16 source_port;
    __u16 destination_port;
    __u32 protocol;
};

// The loader sets the number of entries where they are used.
struct {
    NUMBER(type, BPF_MAP_TYPE_HASH);
    NUMBER(max_entries, 1);
    TYPE(key, struct flow);
    TYPE(value, __u64);
} flows SECTION(".maps");

struct {
    NUMBER(type, BPF_MAP_TYPE_PERCPU_HASH);
    NUMBER(max_entries, 1);
    TYPE(key, struct flow);
    TYPE(value, __u64);
} flows_per_cpu SECTION(".maps");

static long (*bpf_map_update_elem)(void *map, const void *key, const void *value,
                                   __u64 flags) = (void *)BPF_FUNC_map_update_elem;

// Writes the next tuple into the headers of an IPv4 frame.
INLINE void rotate_tuple(struct xdp_md *frame) {
    void *data = (void *)(long)frame->data, *end = (void *)(long)frame->data_end;
    struct ipv4_header *ip = data + 14;
    __u32 zero = 0;
    struct cursor_value *cursor = bpf_map_lookup_elem(&cursors, &zero);
    const __u8 *tuples = bpf_map_lookup_elem(&traffic, &zero);
    if (!cursor || !tuples || (void *)(ip + 1) > end) return;
    __u64 at = (cursor->next++ & cursor->mask) * sizeof(struct tuple);
    OPAQUE(at);
    if (at > 16777216 - sizeof(struct tuple)) return;
    const struct tuple *tuple = (const struct tuple *)(tuples + at);
    ip->source = tuple->source;
    ip->destination = tuple->destination;
    ip->source_port = tuple->source_port;
    ip->destination_port = tuple->destination_port;
    ip->protocol = tuple->protocol;
}

SECTION("xdp")
int bench_pass(struct xdp_md *frame) {
    rotate_tuple(frame);
    return XDP_PASS;
}

SECTION("xdp")
int bench_sketch(struct xdp_md *frame) {
    rotate_tuple(frame);
    count_xdp(frame, frame->data_end - frame->data);
    return XDP_PASS;
}

SECTION("xdp.frags")
int bench_sketch_frags(struct xdp_md *frame) {
    rotate_tuple(frame);
    count_xdp(frame, bpf_xdp_get_buff_len(frame));
    return XDP_PASS;
}

INLINE int parse_flow(struct xdp_md *frame, struct flow *flow) {
    struct packet packet = {};
    __u32 length = frame->data_end - frame->data;
    if (!parse_common((void *)(long)frame->data, (void *)(long)frame->data_end, length, &packet)) return 0;
    flow->source = packet.source[0];
    flow->destination = packet.destination[0];
    flow->source_port = packet.source_port;
    flow->destination_port = packet.destination_port;
    flow->protocol = packet.protocol;
    return 1;
}

INLINE void count_in(void *map, struct xdp_md *frame) {
    struct flow flow;
    __u64 one = 1;
    if (!parse_flow(frame, &flow)) return;
    __u64 *packets = bpf_map_lookup_elem(map, &flow);
    if (packets)
        __sync_fetch_and_add(packets, 1);
    else
        bpf_map_update_elem(map, &flow, &one, BPF_NOEXIST);
}

SECTION("xdp")
int bench_hash_map(struct xdp_md *frame) {
    rotate_tuple(frame);
    count_in(&flows, frame);
    return XDP_PASS;
}

SECTION("xdp")
int bench_per_cpu_hash_map(struct xdp_md *frame) {
    rotate_tuple(frame);
    count_in(&flows_per_cpu, frame);
    return XDP_PASS;
}

SECTION("xdp")
int bench_hash_map_update(struct xdp_md *frame) {
    struct flow flow;
    rotate_tuple(frame);
    __u64 length = frame->data_end - frame->data;
    if (parse_flow(frame, &flow)) bpf_map_update_elem(&flows, &flow, &length, BPF_ANY);
    return XDP_PASS;
}

SECTION("xdp")
int bench_peer_nitrosketch(struct xdp_md *frame) {
    rotate_tuple(frame);
    peer_nitrosketch((void *)(long)frame->data, (void *)(long)frame->data_end);
    return XDP_PASS;
}

SECTION("xdp")
int bench_peer_countsketch(struct xdp_md *frame) {
    rotate_tuple(frame);
    peer_countsketch((void *)(long)frame->data, (void *)(long)frame->data_end);
    return XDP_PASS;
}

char licence[] SECTION("license") = "Apache-2.0";
