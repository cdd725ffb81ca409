//! The crate `datasketches`, Apache's own in Rust.

use datasketches::countmin::CountMinSketch;

use crate::clock::nanos_of;
use crate::{ROWS, Stream, Subject, WIDTH};

/// Runs its only frequency sketch of this kind.
pub fn run(stream: &Stream) {
    let mut sketch = CountMinSketch::<u32>::new(ROWS as u8, WIDTH as u32).expect("a shape that it takes");
    let nanos = nanos_of(|| stream.keys.iter().for_each(|key| sketch.update(key)));
    let subject = Subject::new("datasketches", "Count-Min");
    stream.print(&subject, nanos, |key| f64::from(sketch.estimate(key)), None);
}
