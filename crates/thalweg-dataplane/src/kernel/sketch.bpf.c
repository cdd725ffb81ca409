// SPDX-License-Identifier: Apache-2.0
// The programs that count frames: at XDP, for frames in one buffer or in several, and at the ingress of tc. They always
// let the frame pass, and other programs run after them.

#include "sketch.h"

#define NEXT_PROGRAM (-1) // TCX_NEXT of linux/bpf.h.

SECTION("xdp")
int sketch_xdp(struct xdp_md *frame) {
    count_xdp(frame, frame->data_end - frame->data);
    return XDP_PASS;
}

SECTION("xdp.frags")
int sketch_xdp_frags(struct xdp_md *frame) {
    count_xdp(frame, bpf_xdp_get_buff_len(frame));
    return XDP_PASS;
}

SECTION("tc")
int sketch_tc(struct __sk_buff *frame) {
    __u32 cpu, length = frame->len;
    // The outer tag is in metadata, not in the frame.
    __u32 on_wire = length + (frame->vlan_present ? VLAN_TAG : 0);
    __u64 number;
    struct state *state = own_state(&cpu);
    if (!state || !is_due(state, on_wire, &number)) return NEXT_PROGRAM;
    struct packet *packet = &state->packet;
    if (!parse_common((void *)(long)frame->data, (void *)(long)frame->data_end, length, packet)) {
        __u64 captured = copied(length);
        if (captured == 0 || captured > CAPTURED || bpf_skb_load_bytes(frame, 0, state->parser.copy, captured))
            packet->reason = TOO_SHORT;
        else
            parse_copy(&state->parser, captured, length, packet);
    }
    count(state, cpu, number, on_wire);
    return NEXT_PROGRAM;
}

char licence[] SECTION("license") = "Apache-2.0";
