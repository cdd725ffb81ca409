// Sketches: summaries of a stream of weighted keys in a small, fixed memory, with NitroSketch sampling.
//
// Made by cbindgen from the sources of thalweg-c. https://www.apache.org/licenses/LICENSE-2.0
//
// Threads: a sketch may be used by one thread at a time, and by another later. Functions that take a const sketch may run
// in several threads at once. Different sketches are independent.
//
// Errors: every function that can fail returns a status. thalweg_last_error() has the text of the last failure of the
// calling thread. A failed call changes nothing, unless its status is THALWEG_STATUS_DEFECT.
//
// Memory: updates and queries of single keys do not allocate. What a function allocates is freed by the function that its
// description names, not by free().


#ifndef THALWEG_SKETCH_H
#define THALWEG_SKETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The length of the longest key, in bytes.
#define THALWEG_KEY_MAX 64

// What a function returns.
typedef enum {
  // Done.
  THALWEG_STATUS_OK = 0,
  // An argument is null, out of range, or contradicts another.
  THALWEG_STATUS_INVALID_ARGUMENT = 1,
  // This kind of sketch does not answer the question.
  THALWEG_STATUS_UNANSWERED = 2,
  // Two sketches differ in kind, shape, counters, seed or candidates, so they cannot be combined.
  THALWEG_STATUS_MISMATCH = 3,
  // The bytes are not the state of a sketch with counters.
  THALWEG_STATUS_INVALID_STATE = 4,
  // A defect of the library. Free the sketch: its counts may be wrong.
  THALWEG_STATUS_DEFECT = 5,
  // The system does not give that much memory.
  THALWEG_STATUS_OUT_OF_MEMORY = 6,
} thalweg_status;

// What is known of the error of an estimate.
typedef enum {
  // The truth is in lower..upper with the confidence.
  THALWEG_BOUND_INTERVAL = 0,
  // Too few updates were sampled for a bound.
  THALWEG_BOUND_NOT_CONVERGED = 1,
  // No bound is known for this kind of estimate.
  THALWEG_BOUND_UNKNOWN = 2,
} thalweg_bound;

// The kind of a sketch.
typedef enum {
  // Weights that are never too low; error at most eps L1.
  THALWEG_KIND_COUNT_MIN = 1,
  // Unbiased weights; error at most eps L2.
  THALWEG_KIND_COUNT_SKETCH = 2,
  // Changes between windows.
  THALWEG_KIND_K_ARY = 3,
  // Heavy keys, distinct keys, entropy and moments from one state.
  THALWEG_KIND_UNIV_MON = 4,
} thalweg_kind;

// How the probability p of a row update is chosen.
typedef enum {
  // A constant p.
  THALWEG_MODE_FIXED = 0,
  // p follows the arrival rate, so that updates fit into a share of the processor's time. Needs thalweg_sketch_advance().
  THALWEG_MODE_ALWAYS_LINE_RATE = 1,
  // p = 1 until sampling keeps the error below target_eps L2.
  THALWEG_MODE_ALWAYS_CORRECT = 2,
} thalweg_mode;

// A question about the whole stream.
typedef enum {
  // F2, the sum of the squares of all keys' weights; not of a Count-Min.
  THALWEG_QUESTION_F2 = 0,
  // The number of distinct keys; of a UnivMon.
  THALWEG_QUESTION_DISTINCT = 1,
  // The entropy of the weights over the keys, in bits; of a UnivMon.
  THALWEG_QUESTION_ENTROPY = 2,
  // The number of packets without a key, among those given to thalweg_sketch_update_with().
  THALWEG_QUESTION_UNCOUNTED = 3,
} thalweg_question;

// A sketch: Count-Min, Count Sketch, K-ary or UnivMon, with NitroSketch sampling.
typedef struct thalweg_sketch thalweg_sketch;

// What a new sketch is. Set all fields with thalweg_sketch_options_init(), then change some.
typedef struct {
  // The size of this structure, which tells the library which fields the program knows.
  size_t size;
  // The kind, a thalweg_kind (THALWEG_KIND_COUNT_SKETCH).
  uint32_t kind;
  // Bits of a counter, 32 or 64 (32). Counters saturate; they never wrap.
  uint32_t counter_bits;
  // Rows, 1 to 8 (5).
  uint32_t rows;
  // Counters in a row, a power of two from 4 to 8388608 (1024).
  uint32_t width;
  // Levels of a UnivMon, 1 to 17 (16).
  uint32_t levels;
  // The largest keys to track, at most 16777216, 0 for none (100); of a UnivMon for each level, at least 1.
  uint32_t top_k;
  // If not 0: the widest shape for these bytes of memory, instead of width (0).
  uint64_t memory_bytes;
  // If not 0: the smallest shape whose error is at most eps L1 (Count-Min) or eps L2 with probability 1 - delta, instead of
  // rows and width (0).
  double eps;
  // The probability of a larger error than eps (0.01).
  double delta;
  // The seed of the hash: equal in sketches that are to be merged, secret and random where traffic may be hostile (0).
  uint64_t hash_seed;
  // The seed of the draws (1).
  uint64_t sampler_seed;
  // The mode, a thalweg_mode (THALWEG_MODE_FIXED).
  uint32_t mode;
  // 1/p, a power of two from 1 to 1024 (1). In the other modes the largest that may be used; 1 there means 128.
  uint32_t inverse_probability;
  // AlwaysLineRate: the time between choices of p, in nanoseconds (100000000).
  uint64_t epoch_ns;
  // AlwaysLineRate: the share of a processor's time for updates, more than 0, at most 1 (0.1).
  double share;
  // AlwaysLineRate: the cost of a row at p = 1, in nanoseconds (1.5).
  double row_ns;
  // AlwaysLineRate: the cost of a sampled row, in nanoseconds (12).
  double sampled_row_ns;
  // AlwaysCorrect: the error as a share of L2; 0 for 1.5 times that of the shape at p = 1 (0).
  double target_eps;
} thalweg_sketch_options;

// Writes the key of packet `packet` of a batch to `key`, which has room for THALWEG_KEY_MAX bytes, and returns its length; 0
// if the packet has no key, and so does a length above THALWEG_KEY_MAX. It must not throw, jump out, or use the sketch.
typedef size_t (*thalweg_key_function)(void *context, size_t packet, uint8_t *key);

// A value with its error bounds.
typedef struct {
  // The value.
  double value;
  // The lower bound; minus infinity without a bound.
  double lower;
  // The upper bound; infinity without a bound.
  double upper;
  // The probability that both bounds hold, 0 without a bound.
  double confidence;
  // What is known of the error.
  thalweg_bound bound;
} thalweg_estimate;

// Totals of the stream.
typedef struct {
  // The sum of all weights, without the estimated weight of packets that had no key.
  int64_t total;
  // 1/p, now.
  uint32_t inverse_probability;
  // The largest 1/p so far.
  uint32_t max_inverse_probability;
  // Additions that exceeded a counter's range. Bounds hold while it is 0.
  uint64_t saturations;
  // The memory of counters and candidates, in bytes.
  uint64_t memory_bytes;
} thalweg_statistics;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the text of the last failure of this thread, empty if there was none. It is valid until the thread's next call
// that fails.
const char *thalweg_last_error(void);

// Returns the version of the library, such as "0.1.0". Symbols have versions of their own, THALWEG_1 and later, so a program
// runs with every later library of the same major version.
const char *thalweg_version(void);

// Sets all fields to their defaults, which stand in parentheses. `size` is sizeof(thalweg_sketch_options).
//
// Pointers: `options` is null or points to `size` bytes that may be written.
thalweg_status thalweg_sketch_options_init(thalweg_sketch_options *options,
                                           size_t size);

// Creates an empty sketch, or returns THALWEG_STATUS_OUT_OF_MEMORY. Free it with thalweg_sketch_free().
//
// Pointers: `options` is null or as thalweg_sketch_options_init() sets it; `sketch` is null or points to a pointer.
thalweg_status thalweg_sketch_create(const thalweg_sketch_options *options,
                                     thalweg_sketch **sketch);

// Samples further updates in the mode of `options`, of which only the fields of the mode are read. A loaded sketch has p = 1
// before.
//
// Pointers: `sketch` is null or a sketch; `options` is null or as thalweg_sketch_options_init() sets it.
thalweg_status thalweg_sketch_set_mode(thalweg_sketch *sketch,
                                       const thalweg_sketch_options *options);

// Frees a sketch; null is allowed.
//
// Pointers: `sketch` is null or a sketch that is not used again.
void thalweg_sketch_free(thalweg_sketch *sketch);

// Counts `count` keys of `key_length` bytes each, which lie one behind another, with their weights, or with weights of 1 if
// `weights` is null. Keys of different lengths are different. Only sampled keys are read. A burst of packets is the best batch.
//
// Pointers: `sketch` is null or a sketch; `keys` points to `count` times `key_length` bytes; `weights` is null or points to `count`
// numbers.
thalweg_status thalweg_sketch_update(thalweg_sketch *sketch,
                                     const uint8_t *keys,
                                     size_t key_length,
                                     const int64_t *weights,
                                     size_t count);

// Counts `count` packets and calls `key` for the sampled ones only, because parsing a packet costs more than sampling it. The
// packets for which it returns 0 are counted as such: see THALWEG_QUESTION_UNCOUNTED. Weights must be known for all
// packets; null stands for weights of 1.
//
// Pointers: `sketch` is null or a sketch; `key` is null or a function as described, which is called with `context`; `weights` is null
// or points to `count` numbers.
thalweg_status thalweg_sketch_update_with(thalweg_sketch *sketch,
                                          size_t count,
                                          thalweg_key_function key,
                                          void *context,
                                          const int64_t *weights);

// Returns how many packets may pass unparsed before the next sampled one: 0 if that is the next packet, as always at p = 1.
// 0 for null.
//
// Pointers: `sketch` is null or a sketch.
uint64_t thalweg_sketch_unsampled(const thalweg_sketch *sketch);

// Counts up to `packets` packets of weight 1 that pass unparsed, and returns how many: at most thalweg_sketch_unsampled(). Then
// give the next packet to thalweg_sketch_update(). 0 for null.
//
// Pointers: `sketch` is null or a sketch.
uint64_t thalweg_sketch_skip(thalweg_sketch *sketch,
                             uint64_t packets);

// Tells the current time in nanoseconds of any monotonic clock, about once a burst. Only AlwaysLineRate needs it.
//
// Pointers: `sketch` is null or a sketch.
void thalweg_sketch_advance(thalweg_sketch *sketch,
                            uint64_t now_ns);

// Empties the sketch at the end of a window. p goes on, but for AlwaysCorrect, which starts at 1.
//
// Pointers: `sketch` is null or a sketch.
thalweg_status thalweg_sketch_clear(thalweg_sketch *sketch);

// Estimates the weights of `count` keys of `key_length` bytes each. Many keys at once are faster than one by one, because the
// noise of the sketch is measured once.
//
// Pointers: `sketch` is null or a sketch; `keys` points to `count` times `key_length` bytes, `estimates` to `count` estimates.
thalweg_status thalweg_sketch_estimate(const thalweg_sketch *sketch,
                                       const uint8_t *keys,
                                       size_t key_length,
                                       size_t count,
                                       thalweg_estimate *estimates);

// Writes up to `capacity` keys with the largest estimates, largest first: key i to `keys + i * THALWEG_KEY_MAX`, its length to
// `key_lengths[i]`, its estimate to `estimates[i]`. `count` receives their number. A sketch that tracks no keys has none.
//
// Pointers: `sketch` is null or a sketch; `keys` points to `capacity` times THALWEG_KEY_MAX bytes, `key_lengths` and `estimates` to
// `capacity` values, `count` to one.
thalweg_status thalweg_sketch_largest(const thalweg_sketch *sketch,
                                      size_t capacity,
                                      uint8_t *keys,
                                      size_t *key_lengths,
                                      thalweg_estimate *estimates,
                                      size_t *count);

// Answers a question, a thalweg_question, about the whole stream.
//
// Pointers: `sketch` is null or a sketch; `answer` is null or points to an estimate.
thalweg_status thalweg_sketch_ask(const thalweg_sketch *sketch,
                                  uint32_t question,
                                  thalweg_estimate *answer);

// Returns totals of the stream.
//
// Pointers: `sketch` is null or a sketch; `statistics` is null or points to a structure.
thalweg_status thalweg_sketch_statistics(const thalweg_sketch *sketch,
                                         thalweg_statistics *statistics);

// Encodes the sketch as a state, which other programs of Thalweg read (`thalweg sketch show`). `key_kind` names the keys, for
// example "5tuple" for keys as `thalweg watch` makes them; sketches of different names cannot be merged by these programs.
// `label` is any text. Both are UTF-8, and may be null for none. The window is start_ns to end_ns since 1970, both 0 for none.
// Free `bytes` with thalweg_bytes_free().
//
// Pointers: `sketch` is null or a sketch; the texts are null or end with a zero byte; `bytes` and `length` are null or point to values.
thalweg_status thalweg_sketch_save(const thalweg_sketch *sketch,
                                   const char *key_kind,
                                   const char *label,
                                   uint64_t start_ns,
                                   uint64_t end_ns,
                                   uint8_t **bytes,
                                   size_t *length);

// Frees the bytes of thalweg_sketch_save(); null is allowed.
//
// Pointers: `bytes` is null or comes from thalweg_sketch_save(), with its length, and is not used again.
void thalweg_bytes_free(uint8_t *bytes, size_t length);

// Creates a sketch from a state, of this library or of another program of Thalweg. It goes on with p = 1 until
// thalweg_sketch_set_mode(). Bytes may be damaged or hostile: they are checked. Free it with thalweg_sketch_free().
//
// Pointers: `bytes` points to `length` bytes; `sketch` is null or points to a pointer.
thalweg_status thalweg_sketch_load(const uint8_t *bytes,
                                   size_t length,
                                   thalweg_sketch **sketch);

// Adds `other` to `sketch`: then it is that of both streams. Kind, shape, counters and hash seed must be equal, not the modes.
//
// Pointers: Both are null or sketches.
thalweg_status thalweg_sketch_merge(thalweg_sketch *sketch,
                                    const thalweg_sketch *other);

// Subtracts `other` from `sketch`: then it is that of the change since the earlier window `other`.
//
// Pointers: Both are null or sketches.
thalweg_status thalweg_sketch_subtract(thalweg_sketch *sketch, const thalweg_sketch *other);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* THALWEG_SKETCH_H */
