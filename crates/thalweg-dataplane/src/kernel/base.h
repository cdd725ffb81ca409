// SPDX-License-Identifier: Apache-2.0
// Attributes, map declarations, helpers of bpf-helpers(7) and byte order, for all programs of this folder.

#pragma once

#include <linux/bpf.h>
#include <stddef.h>

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

// Map declarations for loaders: a number is the length of an array, a type that of a pointer.
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, of) typeof(of) *name

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static __u32 (*bpf_get_smp_processor_id)(void) = (void *)BPF_FUNC_get_smp_processor_id;
static long (*bpf_skb_load_bytes)(const void *skb, __u32 offset, void *to, __u32 length) =
    (void *)BPF_FUNC_skb_load_bytes;
static __u64 (*bpf_xdp_get_buff_len)(struct xdp_md *frame) = (void *)BPF_FUNC_xdp_get_buff_len;
static long (*bpf_xdp_load_bytes)(struct xdp_md *frame, __u32 offset, void *to, __u32 length) =
    (void *)BPF_FUNC_xdp_load_bytes;

#define NETWORK_16(value) __builtin_bswap16(value)

// A value that the compiler must not reason about, so that its bounds checks stay where the verifier sees them.
#define OPAQUE(value) asm volatile("" : "+r"(value))

// A loop that stays one: the programs are verified faster, and need less stack.
#define LOOP _Pragma("clang loop unroll(disable)") for
