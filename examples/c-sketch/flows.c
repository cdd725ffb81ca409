// Finds the largest flows of a capture file as a software switch would: packets come in bursts, and only those are parsed
// whose row updates are sampled.
//
//   ./flows FILE.pcap [1/P [STATE]]      P: 1, 2, 4, ... 1024; STATE: where the sketch is saved
//
// Reads pcap files with Ethernet frames. For other formats: editcap -F pcap IN OUT.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <thalweg_sketch.h>

enum { BURST = 32, FRAME_MAX = 65536 };

struct frame {
  uint32_t length;
  uint8_t bytes[FRAME_MAX];
};

static struct frame burst[BURST];
static uint64_t parsed;

static uint16_t big16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }

// The 5-tuple in the bytes that `thalweg watch` uses for it: addresses, ports, protocol. 13 bytes for IPv4, 37 for IPv6.
static size_t five_tuple(void *context, size_t packet, uint8_t *key) {
  (void)context;
  const struct frame *frame = &burst[packet];
  const uint8_t *at = frame->bytes, *end = at + frame->length;
  parsed++;
  if (end - at < 14) return 0;
  uint16_t type = big16(at + 12);
  at += 14;
  while ((type == 0x8100 || type == 0x88a8) && end - at >= 4) {
    type = big16(at + 2);
    at += 4;
  }
  const uint8_t *addresses;
  size_t length;
  uint8_t protocol;
  bool has_ports = true;
  if (type == 0x0800 && end - at >= 20) {
    protocol = at[9];
    addresses = at + 12;
    length = 8;
    has_ports = (big16(at + 6) & 0x1fff) == 0;  // later fragments have none
    at += (size_t)(at[0] & 15) * 4;
  } else if (type == 0x86dd && end - at >= 40) {
    protocol = at[6];
    addresses = at + 8;
    length = 32;
    at += 40;
    // Hop-by-hop, routing and destination options come before the transport header.
    while ((protocol == 0 || protocol == 43 || protocol == 60) && end - at >= 8) {
      protocol = at[0];
      at += 8 * (size_t)(at[1] + 1);
    }
  } else {
    return 0;
  }
  memcpy(key, addresses, length);
  memset(key + length, 0, 4);
  bool is_tcp_or_udp = protocol == 6 || protocol == 17 || protocol == 132;
  if (has_ports && is_tcp_or_udp && end - at >= 4) memcpy(key + length, at, 4);
  key[length + 4] = protocol;
  return length + 5;
}

static void check(thalweg_status status) {
  if (status != THALWEG_STATUS_OK) {
    fprintf(stderr, "flows: %s\n", thalweg_last_error());
    exit(1);
  }
}

static void print_key(const uint8_t *key, size_t length) {
  size_t address = (length - 5) / 2;
  for (int side = 0; side < 2; side++) {
    const uint8_t *at = key + side * address;
    for (size_t i = 0; i < address; i += 2) {
      if (address == 4) printf(i ? ".%u.%u" : "%u.%u", at[i], at[i + 1]);
      else printf(i ? ":%x" : "%x", big16(at + i));
    }
    printf(side ? " port %u" : " port %u > ", big16(key + 2 * address + 2 * side));
  }
  printf(", protocol %u", key[length - 1]);
}

static void save(const thalweg_sketch *sketch, const char *name) {
  uint8_t *bytes;
  size_t length;
  check(thalweg_sketch_save(sketch, "5tuple", "flows.c", 0, 0, &bytes, &length));
  FILE *file = fopen(name, "wb");
  if (!file || fwrite(bytes, 1, length, file) != length || fclose(file)) {
    perror(name);
    exit(1);
  }
  thalweg_bytes_free(bytes, length);
}

static uint32_t swapped(uint32_t number, bool swap) {
  return swap ? __builtin_bswap32(number) : number;
}

// Reads the next frame; false at the end of the file.
static bool read_frame(FILE *file, bool swap, struct frame *frame) {
  uint32_t header[4];
  if (fread(header, sizeof header, 1, file) != 1) return false;
  frame->length = swapped(header[2], swap);
  return frame->length <= FRAME_MAX && fread(frame->bytes, frame->length, 1, file) == 1;
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 4) {
    fprintf(stderr, "usage: flows FILE.pcap [1/P [STATE]]\n");
    return 2;
  }
  FILE *file = fopen(argv[1], "rb");
  uint32_t header[6];
  if (!file || fread(header, sizeof header, 1, file) != 1) {
    perror(argv[1]);
    return 1;
  }
  bool swap = header[0] == 0xd4c3b2a1 || header[0] == 0x4d3cb2a1;
  uint32_t magic = swapped(header[0], swap);
  if ((magic != 0xa1b2c3d4 && magic != 0xa1b23c4d) || (swapped(header[5], swap) & 0xffff) != 1) {
    fprintf(stderr, "%s: not a pcap file of Ethernet frames\n", argv[1]);
    return 1;
  }

  thalweg_sketch_options options;
  check(thalweg_sketch_options_init(&options, sizeof options));
  options.inverse_probability = argc > 2 ? (uint32_t)strtoul(argv[2] + (strncmp(argv[2], "1/", 2) ? 0 : 2), NULL, 10) : 1;
  options.top_k = 10;
  thalweg_sketch *sketch;
  check(thalweg_sketch_create(&options, &sketch));

  uint64_t packets = 0;
  size_t filled;
  do {
    for (filled = 0; filled < BURST && read_frame(file, swap, &burst[filled]);) filled++;
    check(thalweg_sketch_update_with(sketch, filled, five_tuple, NULL, NULL));
    packets += filled;
  } while (filled == BURST);
  fclose(file);

  thalweg_estimate uncounted;
  check(thalweg_sketch_ask(sketch, THALWEG_QUESTION_UNCOUNTED, &uncounted));
  printf("%" PRIu64 " packets, of which %" PRIu64 " were parsed; without a flow %.0f [%.0f, %.0f]\n", packets, parsed,
         uncounted.value, uncounted.lower, uncounted.upper);

  uint8_t keys[10 * THALWEG_KEY_MAX];
  size_t lengths[10], found;
  thalweg_estimate estimates[10];
  check(thalweg_sketch_largest(sketch, 10, keys, lengths, estimates, &found));
  for (size_t i = 0; i < found; i++) {
    printf("%8.0f [%.0f, %.0f]  ", estimates[i].value, estimates[i].lower, estimates[i].upper);
    print_key(keys + i * THALWEG_KEY_MAX, lengths[i]);
    printf("\n");
  }
  if (argc > 3) save(sketch, argv[3]);
  thalweg_sketch_free(sketch);
  return 0;
}
