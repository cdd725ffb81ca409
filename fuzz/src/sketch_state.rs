//! Saved states of sketches.
//!
//! Arbitrary bytes rarely have a correct checksum, so they are also checked with a corrected one.

use thalweg_sketch::state::{AnyState, KeyBytes, Meta, StateError, checksum};

type State = AnyState<KeyBytes>;

/// Checks that any bytes are an error or a state that encodes to the same bytes, and that can be queried,
/// merged, subtracted and then saved again.
///
/// # Panics
/// When the property does not hold.
pub fn check(data: &[u8]) {
    check_bytes(data);
    if let Some((body, _)) = data.split_last_chunk::<8>() {
        check_bytes(&[body, &checksum(body).to_le_bytes()].concat());
    }
}

fn check_bytes(data: &[u8]) {
    match State::decode(data) {
        Ok((meta, state)) => check_state(data, &meta, &state),
        Err(error) => check_error(&error, data.len()),
    }
}

fn check_state(data: &[u8], meta: &Meta, state: &State) {
    assert!(state.encode(meta) == data, "the encoding of a state is not unique");
    check_answers(state);
    let mut whole = state.clone();
    whole.merge(state).expect("a state is of the same kind as itself");
    check_saved_again(&whole);
    let mut difference = whole;
    match difference.subtract(state) {
        Ok(()) => check_saved_again(&difference),
        Err(error) => assert!(state.statistics().is_none(), "{error}"),
    }
}

fn check_saved_again(state: &State) {
    check_answers(state);
    let meta = Meta::default();
    assert!(State::decode(&state.encode(&meta)) == Ok((meta, state.clone())));
}

fn check_answers(state: &State) {
    for (_, estimate) in state.largest() {
        assert!(!estimate.to_string().is_empty());
    }
}

/// Checks that offsets are within the bytes and the message is one line.
fn check_error(error: &StateError, length: usize) {
    let message = error.to_string();
    assert!(!message.is_empty() && !message.contains('\n'), "{message:?}");
    if let StateError::Truncated { offset, left, needed, .. } = error {
        assert!(offset + left <= length && *needed > *left as u64, "{message}");
    }
}
