// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the loader load: two maps, a program that uses both, and one that uses a global variable.
// `clang -target bpf -O2 -g -idirafter /usr/include/x86_64-linux-gnu -c counter.bpf.c -o counter.bpf.o`, and
// `llvm-strip -g counter.bpf.o`.

#include <linux/bpf.h>

#define SECTION(name) __attribute__((section(name), used))

struct key {
    __u16 length;
    __u8 rest[4];
};

typedef struct {
    __u64 sums[3];
} sums;

struct {
    int(*type)[BPF_MAP_TYPE_PERCPU_ARRAY];
    int(*max_entries)[1];
    __u32 *key;
    __u64 *value;
} packets SECTION(".maps");

struct {
    int(*type)[BPF_MAP_TYPE_HASH];
    int(*max_entries)[16];
    int(*map_flags)[BPF_F_NO_PREALLOC];
    const struct key *key;
    sums *value;
} by_length SECTION(".maps");

__u64 total = 1;

static void *(*look_up)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;

SECTION("xdp") int count(struct xdp_md *frame) {
    __u32 first = 0;
    __u64 *packet_count = look_up(&packets, &first);
    if (packet_count)
        ++*packet_count;
    struct key key = {.length = (__u16)(frame->data_end - frame->data)};
    sums *found = look_up(&by_length, &key);
    if (found)
        found->sums[1]++;
    return XDP_PASS;
}

SECTION("xdp") int count_in_a_variable(struct xdp_md *frame) {
    (void)frame;
    total++;
    return XDP_PASS;
}

char licence[] SECTION("license") = "Apache-2.0";
