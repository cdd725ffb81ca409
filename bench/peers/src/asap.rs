//! The crate `asap_sketchlib`: its fast path, where one hash serves all rows.

use asap_sketchlib::{
    CountMinSketch, CountMinSketchWithHeap, CountSketch, CountSketchWithHeap, DataInput, FastPath,
    NitroBatch, NitroEstimate, NitroTarget, OwnedDataInput, TopKHeap, UnivMon, Vector2D,
};

use crate::clock::nanos_of;
use crate::{Key, ROWS, SAMPLED, SEED, Stream, Subject, TOP, WIDTH, fold};

const STREAMING: &str = "asap_sketchlib, streaming";
const BATCH: &str = "asap_sketchlib, batch";
const LEVELS: usize = 16;

type Min = CountMinSketch<Vector2D<i32>, FastPath>;
type Signed = CountSketch<Vector2D<i32>, FastPath>;
type MinTop = CountMinSketchWithHeap<Vector2D<i32>, FastPath>;
type SignedTop = CountSketchWithHeap<Vector2D<i32>, FastPath>;

/// Runs all sketches of the crate.
pub fn run(stream: &Stream) {
    count_min(stream);
    count_sketch(stream);
    univmon(stream);
    let min = || Min::with_dimensions(ROWS, WIDTH);
    let signed = || Signed::with_dimensions(ROWS, WIDTH);
    for p in [1.0].into_iter().chain(SAMPLED) {
        batch(stream, "Count-Min", p, min());
        batch(stream, "Count Sketch", p, signed());
    }
}

fn input(key: &Key) -> DataInput<'_> {
    DataInput::Bytes(key)
}

/// Returns the keys in a heap.
fn named(heap: &TopKHeap<impl asap_sketchlib::HeapCount>) -> Vec<Key> {
    let key = |key: &OwnedDataInput| match key {
        OwnedDataInput::Bytes(bytes) => bytes.as_slice().try_into().ok(),
        _ => None,
    };
    heap.heap().iter().filter_map(|entry| key(&entry.key)).collect()
}

fn count_min(stream: &Stream) {
    let subject = Subject::new(STREAMING, "Count-Min");
    let mut sketch = Min::with_dimensions(ROWS, WIDTH);
    let nanos = nanos_of(|| stream.keys.iter().for_each(|key| sketch.update(&input(key))));
    stream.print(&subject, nanos, |key| f64::from(sketch.estimate(&input(key))), None);

    for p in SAMPLED {
        let mut sketch = Min::with_dimensions(ROWS, WIDTH);
        sketch.enable_nitro_with_seed(p, SEED);
        let nanos = nanos_of(|| stream.keys.iter().for_each(|key| sketch.nitro_update(&input(key))));
        let subject = Subject { p, ..Subject::new(STREAMING, "Count-Min") };
        stream.print(&subject, nanos, |key| sketch.nitro_estimate(&input(key)), None);
    }

    let mut sketch = MinTop::new(ROWS, WIDTH, TOP);
    let nanos = nanos_of(|| stream.keys.iter().for_each(|key| sketch.update(&input(key))));
    let subject = Subject { top: TOP, ..subject };
    let named = named(sketch.heap());
    stream.print(&subject, nanos, |key| f64::from(sketch.estimate(&input(key))), Some(&named));
}

fn count_sketch(stream: &Stream) {
    let subject = Subject::new(STREAMING, "Count Sketch");
    let mut sketch = Signed::with_dimensions(ROWS, WIDTH);
    let nanos = nanos_of(|| stream.keys.iter().for_each(|key| sketch.update(&input(key))));
    stream.print(&subject, nanos, |key| sketch.estimate(&input(key)), None);

    for p in SAMPLED {
        let mut sketch = Signed::with_dimensions(ROWS, WIDTH);
        sketch.enable_nitro_with_seed(p, SEED);
        let nanos = nanos_of(|| stream.keys.iter().for_each(|key| sketch.nitro_update(&input(key))));
        let subject = Subject { p, ..Subject::new(STREAMING, "Count Sketch") };
        stream.print(&subject, nanos, |key| sketch.estimate(&input(key)), None);
    }

    let mut sketch = SignedTop::new(ROWS, WIDTH, TOP);
    let nanos = nanos_of(|| stream.keys.iter().for_each(|key| sketch.update(&input(key))));
    let subject = Subject { top: TOP, ..subject };
    let named = named(sketch.heap());
    stream.print(&subject, nanos, |key| sketch.estimate(&input(key)), Some(&named));
}

/// The first level sees every flow.
fn univmon(stream: &Stream) {
    let mut sketch = UnivMon::new(TOP, ROWS, WIDTH, LEVELS);
    let nanos = nanos_of(|| stream.keys.iter().for_each(|key| sketch.update_weighted(&input(key), 1)));
    let subject =
        Subject { top: TOP, levels: LEVELS, counter_bytes: 8, ..Subject::new(STREAMING, "UnivMon") };
    let named = named(&sketch.layer_heaps[0]);
    stream.print(&subject, nanos, |key| sketch.layer_sketches[0].estimate(&input(key)), Some(&named));
}

/// The batch interface; it samples packets, not rows, and accepts only 64-bit keys.
fn batch<S: NitroTarget + NitroEstimate>(stream: &Stream, sketch: &'static str, p: f64, target: S) {
    let mut batch = NitroBatch::with_target_and_seed(p, target, SEED);
    let nanos = nanos_of(|| batch.update_batch_cached_step(&stream.folded));
    let note = "8-byte keys, hashed from 13 bytes outside of the time; whole packets are sampled";
    let subject = Subject { p, key_bytes: 8, note, ..Subject::new(BATCH, sketch) };
    let estimate = |key: &Key| batch.estimate_median(&DataInput::I64(fold(key)));
    stream.print(&subject, nanos, estimate, None);
}
