// SPDX-License-Identifier: Apache-2.0
// The structures and maps that programs and reader share. `layout.rs` in the folder above defines the same structures.

#pragma once

#include "base.h"
#include "headers.h"

#define SKETCHES 4
#define MAX_ROWS 8
#define PROBABILITIES 11 // 2^0 to 2^-10.
#define PARTS_LOG2 10
#define LOG_ENTRY_BYTES 64

enum sketch_kind {
    NO_SKETCH,
    COUNTERS,  // Rows of counters, in one or more levels.
    REGISTERS, // HyperLogLog, in two banks.
};

enum key_kind {
    KEY_5TUPLE,
    KEY_SOURCE,
    KEY_DESTINATION,
    KEY_SERVICE, // Destination address, destination port, protocol.
};

struct sketch {
    __u32 kind;
    __u32 rows;
    __u32 width_log2;
    __u32 deepest; // The last level.
    __u32 is_signed; // 0 or 1.
    __u32 is_wide;     // Counters of 64 bits instead of 32.
    __u32 adds_bytes;  // Instead of packets.
    __u32 logs_keys;
    __u32 key;
    __u32 base;        // Its first byte in the counters of a CPU.
    __u32 is_long;     // Whether rows take bits of words 2 and 3.
    __u32 precision;   // Of registers.
    __u32 mask_v4;     // Of addresses, in memory order.
    __u32 is_exact;    // Whether it is never sampled: all rows are updated at once.
    __u64 mask_v6[2];
    __u8 word[MAX_ROWS];
    __u8 shift[MAX_ROWS];
};

// Constants, which the loader sets before the verifier runs.
struct config {
    __u64 hash_seed;
    __u32 sketches;
    __u32 needs_squares; // Whether a sketch of bytes is sampled.
    __u32 cells_limit;   // The last byte at which eight bytes of counters may begin.
    __u32 gaps_limit;    // The same for the tables of gaps.
    __u32 log_mask;      // Entries of a log, less one.
    __u32 log_limit;     // The last byte at which an entry may begin.
    __u32 first[PROBABILITIES]; // Where the tables of each probability begin.
    __u32 below[PROBABILITIES];
    struct sketch sketch[SKETCHES];
};

const volatile struct config config = {};

// What a reader may change while packets are counted.
struct control {
    __u32 log2[SKETCHES]; // k of the probability of each sketch.
    __u32 bank;           // The bank of registers to write, 0 or 1.
    __u32 padding;
};

// The sampling of one sketch.
struct sampling {
    __u64 next_packet; // The number of the next packet to update.
    __u32 row;         // The row there.
    __u32 log2;        // k of the probability that drew this pair.
    __u64 gap;         // The pairs from the previous one to this one.
    __u64 random[4];   // xoshiro256++.
    __u64 pairs[PROBABILITIES];       // Decided pairs by k, updated or not.
    __u64 squares[PROBABILITIES];     // The squares of the lengths of their packets.
    __u64 squares_mark;
    __u64 uncounted[PROBABILITIES];   // Sampled pairs of packets that cannot be counted.
    __u64 excess; // Of sampled pairs: bytes of the frame beyond Ethernet header and IP packet, times 2^k.
    __u64 excess_squares; // The squares of these bytes, times 4^k.
};

// The state of one CPU.
struct state {
    __u64 packets;
    __u64 bytes;     // Of whole frames.
    __u64 squares;   // Of lengths without the Ethernet header.
    __u64 largest;   // Such length.
    __u64 wake;
    __u64 log_head;  // The number of keys written.
    __u64 read_packets; // The packets that were parsed.
    __u64 reasons[REASONS]; // Of them by reason.
    __u64 fragments; // Of them later fragments, counted with ports zero.
    __u64 portless;  // Of them counted with ports zero because the copy ends before the ports.
    __u64 beyond;    // Of them those whose stated IP length is longer than their frame.
    __u64 ip_bytes;  // Of packets with a key.
    __u64 largest_ip; // Such packet.
    __u64 reason_bytes[REASONS]; // Of parsed frames without a key, by reason.
    struct sampling sampling[SKETCHES];
    // Of the packet that is counted.
    __u64 key[5];
    struct packet packet;
    __u32 low, high; // Of a search.
    __u32 level;
    __u32 padding;
    __u64 words[4]; // Of a digest.
    struct parser parser;
};

// A key, for the reader. `sequence` is its number, from 1, and is written last.
struct log_entry {
    __u64 sequence;
    __u32 check; // The low bits of its hash.
    __u8 sketch;
    __u8 length;
    __u16 padding;
    __u64 key[5];
    __u64 unused;
};

// An array that user space maps: one value per CPU, or one for all. The loader sets the size of a value and their number.
#define MAPPED_ARRAY(name, ...)                 \
    struct {                                    \
        NUMBER(type, BPF_MAP_TYPE_ARRAY);       \
        NUMBER(max_entries, 1);                 \
        NUMBER(map_flags, BPF_F_MMAPABLE);      \
        TYPE(key, __u32);                       \
        __VA_ARGS__;                            \
    } name SECTION(".maps")

MAPPED_ARRAY(states, NUMBER(value_size, 4096));
MAPPED_ARRAY(cells, NUMBER(value_size, 4096));
MAPPED_ARRAY(logs, NUMBER(value_size, 4096));
MAPPED_ARRAY(gaps, NUMBER(value_size, 4096));
MAPPED_ARRAY(controls, TYPE(value, struct control));
