// SPDX-License-Identifier: Apache-2.0
// Counts frames in sketches that the kernel and a reader share.
//
// Each CPU has its own state, counters and log, so that there are no locks. A sketch updates each of its (packet, row)
// pairs with probability 2^-k: the distance to the next pair is geometric and drawn when the previous one is updated
// (NitroSketch, Liu et al. 2019, algorithm 1). `wake` is the number of the next packet that any sketch updates. All
// packets before it cost three additions: they are not parsed, and no random number is drawn.
//
// Nothing here can drop or change a frame. What cannot be counted is counted as that.

#pragma once

#include "base.h"
#include "hash.h"
#include "headers.h"
#include "state.h"

#define MAX_SEARCH 18 // Steps of a search among the gaps of one part: at most 2^16, and the first.

// --- Sampling ---------------------------------------------------------------------------------------------

INLINE __u64 rotate(__u64 value, __u32 bits) { return value << bits | value >> (64 - bits); }

INLINE __u64 draw(struct sampling *sampling) {
    __u64 *s = sampling->random;
    __u64 drawn = rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return drawn;
}

// The n-th value of the distribution function of the gap, from 0.
INLINE __u64 gap_below(const __u8 *tables, __u32 from, __u32 number) {
    __u64 at = (__u64)from + (__u64)number * sizeof(__u64);
    OPAQUE(at);
    if (at > config.gaps_limit) at = config.gaps_limit;
    return *(const __u64 *)(tables + at);
}

INLINE __u32 first_gap(const __u8 *tables, __u32 from, __u32 part) {
    __u64 at = (__u64)from + (__u64)part * sizeof(__u16);
    OPAQUE(at);
    if (at > config.gaps_limit) at = config.gaps_limit;
    return *(const __u16 *)(tables + at);
}

// Draws a gap: inverts the distribution function, in most cases by one or two looks at it, otherwise by a search between
// the gaps of a part and of the next one. The search has its limits in memory, for the same reason as a cursor.
INLINE __u64 draw_gap(struct state *state, struct sampling *sampling, const __u8 *tables, __u32 log2) {
    __u64 drawn = draw(sampling);
    __u32 part = drawn >> (64 - PARTS_LOG2);
    __u32 index = log2 < PROBABILITIES ? log2 : 0;
    __u32 first = config.first[index], below = config.below[index];
    __u32 gap = first_gap(tables, first, part);
    if (gap_below(tables, below, gap - 1) >= drawn) return gap;
    if (gap_below(tables, below, gap) >= drawn) return gap + 1;
    volatile __u32 *low = &state->low, *high = &state->high;
    *low = gap + 2;
    *high = first_gap(tables, first, part + 1);
    LOOP (__u32 step = 0; step < MAX_SEARCH; step++) {
        __u32 from = *low, to = *high;
        if (from >= to) break;
        __u32 middle = (from + to) >> 1;
        if (gap_below(tables, below, middle - 1) < drawn)
            *low = middle + 1;
        else
            *high = middle;
    }
    return *low;
}

// --- Keys -------------------------------------------------------------------------------------------------

// Writes the bytes of a key, zero beyond its length; returns the length.
INLINE __u32 build_key(const volatile struct sketch *sketch, const struct packet *packet, __u64 *key) {
    __u32 kind = sketch->key;
    key[1] = key[2] = key[3] = key[4] = 0;
    if (kind == KEY_5TUPLE) {
        __u64 rest = packet->source_port | (__u64)packet->destination_port << 16 | (__u64)packet->protocol << 32;
        if (!packet->is_ipv6) {
            key[0] = packet->source[0] | packet->destination[0] << 32;
            key[1] = rest;
            return 13;
        }
        key[0] = packet->source[0];
        key[1] = packet->source[1];
        key[2] = packet->destination[0];
        key[3] = packet->destination[1];
        key[4] = rest;
        return 37;
    }
    int is_source = kind == KEY_SOURCE;
    __u64 address_0 = is_source ? packet->source[0] : packet->destination[0];
    __u64 address_1 = is_source ? packet->source[1] : packet->destination[1];
    __u64 service = packet->destination_port | (__u64)packet->protocol << 16;
    if (!packet->is_ipv6) {
        key[0] = address_0 & sketch->mask_v4;
        if (kind != KEY_SERVICE) return 4;
        key[0] |= service << 32;
        return 7;
    }
    key[0] = address_0 & sketch->mask_v6[0];
    key[1] = address_1 & sketch->mask_v6[1];
    if (kind != KEY_SERVICE) return 16;
    key[2] = service;
    return 19;
}

// Appends a key to the CPU's log. A reader that is too slow misses the oldest keys, and knows how many.
INLINE void log_key(struct state *state, __u32 cpu, __u32 sketch, const __u64 *key, __u32 length, __u64 check) {
    __u8 *log = bpf_map_lookup_elem(&logs, &cpu);
    if (!log) return;
    __u64 at = (state->log_head & config.log_mask) * LOG_ENTRY_BYTES;
    OPAQUE(at);
    if (at > config.log_limit) return;
    struct log_entry *entry = (struct log_entry *)(log + at);
    volatile __u64 *sequence = &entry->sequence;
    *sequence = 0;
    entry->check = check;
    entry->sketch = sketch;
    entry->length = length;
    entry->key[0] = key[0];
    entry->key[1] = key[1];
    entry->key[2] = key[2];
    entry->key[3] = key[3];
    entry->key[4] = key[4];
    *sequence = ++state->log_head;
}

// --- Counters ---------------------------------------------------------------------------------------------

// Writes the words of a digest, as in `thalweg_sketch::Shape`. Words 2 and 3 are for shapes with long rows.
INLINE void digest_words(struct words digest, int is_long, __u64 *words) {
    words[0] = digest.low;
    words[1] = digest.high;
    if (!is_long) return;
    words[2] = fold(digest.low ^ 0x9E3779B97F4A7C15ULL, digest.high);
    words[3] = fold(digest.low, digest.high ^ 0xBB67AE8584CAA73BULL);
}

INLINE int add_to_row(const volatile struct sketch *sketch, __u8 *counters, const __u64 *words, __u32 level,
                      __u32 row, __u64 weight) {
    __u64 bits = words[sketch->word[row & (MAX_ROWS - 1)] & 3];
    bits >>= sketch->shift[row & (MAX_ROWS - 1)] & 63;
    __u32 width_log2 = sketch->width_log2 & 31, bytes_log2 = sketch->is_wide ? 3 : 2;
    __u64 column = bits >> 1 & ((1ULL << width_log2) - 1);
    __u64 line = (__u64)level * sketch->rows + row;
    __u64 at = sketch->base + (((line << width_log2) + column) << bytes_log2);
    __u64 is_minus = bits & sketch->is_signed;
    weight = (weight ^ -is_minus) + is_minus;
    OPAQUE(at);
    if (at > config.cells_limit) return 0;
    if (sketch->is_wide)
        *(__u64 *)(counters + at) += weight;
    else
        *(__u32 *)(counters + at) += (__u32)weight;
    return 1;
}

INLINE int add_to_registers(const volatile struct sketch *sketch, __u8 *counters, __u64 word, __u32 bank) {
    __u32 precision = sketch->precision & 31;
    __u32 rank = leading_zeros(word << precision | 1ULL << (precision - 1)) + 1;
    __u64 at = sketch->base + ((__u64)(bank & 1) << precision) + (word >> ((64 - precision) & 63));
    OPAQUE(at);
    if (at > config.cells_limit) return 0;
    if (rank > counters[at]) counters[at] = rank;
    return 1;
}

// Updates the rows of a sketch that are due at packet `number`, and draws the next one.
INLINE void update(struct state *state, __u32 index, __u64 number, __u32 length, __u8 *counters, const __u8 *tables, const volatile struct control *control, __u32 cpu) {
    const volatile struct sketch *sketch = &config.sketch[index & (SKETCHES - 1)];
    struct sampling *sampling = &state->sampling[index & (SKETCHES - 1)];
    const struct packet *packet = &state->packet;
    __u64 *key = state->key;
    struct words digest = {0, 0};
    __u32 kind = sketch->kind, rows = sketch->rows;
    volatile __u32 *level = &state->level, *row = &sampling->row;
    *level = 0;
    int is_counted = packet->reason == COUNTED;
    if (is_counted) {
        __u32 key_length = build_key(sketch, packet, key);
        digest = hash_key(key, key_length, config.hash_seed);
        if (sketch->logs_keys) log_key(state, cpu, index, key, key_length, digest.low);
        digest_words(digest, sketch->is_long, state->words);
        __u32 deepest = sketch->deepest;
        if (deepest) {
            __u32 ones = leading_zeros(~digest.high);
            *level = ones < deepest ? ones : deepest;
        }
    }
    __u64 weight = sketch->adds_bytes ? packet->ip_length : 1;
    __u64 excess = (__u64)length - 14 - (is_counted ? packet->ip_length : 0);
    if (sketch->is_exact) {
        __u64 added = 0;
        if (is_counted && kind == REGISTERS) {
            added = add_to_registers(sketch, counters, digest.low, control->bank);
        } else if (is_counted) {
            LOOP (__u32 step = 0; step < MAX_ROWS; step++) {
                if (step >= rows) break;
                added += add_to_row(sketch, counters, state->words, *level, step, weight);
            }
        }
        if (is_counted && added < rows) state->reasons[FAULT]++;
        sampling->uncounted[0] += rows - added;
        sampling->pairs[0] += rows;
        sampling->excess += excess * rows;
        if (config.needs_squares) {
            sampling->squares[0] += state->squares - sampling->squares_mark;
            sampling->squares_mark = state->squares;
        }
        sampling->next_packet = number + 1;
        return;
    }
    LOOP (__u32 step = 0; step < MAX_ROWS; step++) {
        __u32 log2 = sampling->log2, drawn = log2 < PROBABILITIES ? log2 : 0;
        int is_added = 0;
        if (is_counted) {
            if (kind == REGISTERS)
                is_added = add_to_registers(sketch, counters, digest.low, control->bank);
            else
                is_added = add_to_row(sketch, counters, state->words, *level, *row, weight << (log2 & 15));
            if (!is_added) state->reasons[FAULT]++;
        }
        if (!is_added) sampling->uncounted[drawn]++;
        sampling->pairs[drawn] += sampling->gap;
        sampling->excess += excess << (log2 & 15);
        sampling->excess_squares += excess * excess << 2 * (log2 & 15);
        if (config.needs_squares) {
            sampling->squares[drawn] += state->squares - sampling->squares_mark;
            sampling->squares_mark = state->squares;
        }
        log2 = control->log2[index & (SKETCHES - 1)];
        __u64 gap = log2 ? draw_gap(state, sampling, tables, log2) : 1;
        sampling->log2 = log2;
        sampling->gap = gap;
        __u64 pair = *row + gap;
        if (pair < rows) {
            *row = pair;
            continue;
        }
        if (!rows) break;
        sampling->next_packet = number + pair / rows;
        *row = pair % rows;
        return;
    }
    // Not reached: a sketch has at most MAX_ROWS rows.
    sampling->next_packet = number + 1;
    *row = 0;
}

// The part of counting that every packet takes. Returns whether a sketch is due; then `number` is the packet's.
INLINE int is_due(struct state *state, __u32 length, __u64 *number) {
    *number = state->packets;
    state->packets = *number + 1;
    state->bytes += length;
    if (config.needs_squares) {
        __u64 without_header = length - 14;
        state->squares += without_header * without_header;
        if (without_header > state->largest) state->largest = without_header;
    }
    return *number >= state->wake;
}

// The rest, for packets that a sketch updates.
INLINE void count(struct state *state, __u32 cpu, __u64 number, __u32 length) {
    const struct packet *packet = &state->packet;
    __u32 zero = 0;
    __u8 *counters = bpf_map_lookup_elem(&cells, &cpu);
    const __u8 *tables = bpf_map_lookup_elem(&gaps, &zero);
    const struct control *control = bpf_map_lookup_elem(&controls, &zero);
    if (!counters || !tables || !control) return;
    state->read_packets++;
    state->reasons[packet->reason & (REASONS - 1)]++;
    if (packet->reason == COUNTED) {
        state->ip_bytes += packet->ip_length;
        if (packet->ip_length > state->largest_ip) state->largest_ip = packet->ip_length;
    } else {
        state->reason_bytes[packet->reason & (REASONS - 1)] += length;
    }
    if (packet->notes & NO_FRAGMENT_PORTS) state->fragments++;
    if (packet->notes & NO_PORTS) state->portless++;
    if (packet->reason == COUNTED && packet->notes & BEYOND_FRAME) state->beyond++;
    __u64 wake = ~0ULL;
    LOOP (__u32 index = 0; index < SKETCHES; index++) {
        if (index >= config.sketches) break;
        struct sampling *sampling = &state->sampling[index];
        if (sampling->next_packet <= number)
            update(state, index, number, length, counters, tables, control, cpu);
        if (sampling->next_packet < wake) wake = sampling->next_packet;
    }
    state->wake = wake;
}

INLINE struct state *own_state(__u32 *cpu) {
    *cpu = bpf_get_smp_processor_id();
    return bpf_map_lookup_elem(&states, cpu);
}

// Bytes to copy of a frame.
INLINE __u64 copied(__u32 length) {
    __u64 copied = length < CAPTURED ? length : CAPTURED;
    OPAQUE(copied);
    return copied;
}

// Counts a frame at XDP.
INLINE void count_xdp(struct xdp_md *frame, __u32 length) {
    __u32 cpu;
    __u64 number;
    struct state *state = own_state(&cpu);
    if (!state || !is_due(state, length, &number)) return;
    struct packet *packet = &state->packet;
    if (!parse_common((void *)(long)frame->data, (void *)(long)frame->data_end, length, packet)) {
        __u64 captured = copied(length);
        if (captured == 0 || captured > CAPTURED || bpf_xdp_load_bytes(frame, 0, state->parser.copy, captured))
            packet->reason = TOO_SHORT;
        else
            parse_copy(&state->parser, captured, length, packet);
    }
    count(state, cpu, number, length);
}
