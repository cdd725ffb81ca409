//! Why a datagram was refused.

use thalweg_wire::emulation_protocol::DecodeError;
use thiserror::Error;

/// Why a datagram was refused. Nothing of it was applied, except its acknowledgements where it was valid. Each is
/// counted.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiveError {
    /// It is not a datagram of this protocol, or was damaged on the way.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
    /// It is for the other side of the protocol, or for another endpoint.
    #[error("the datagram is not for this side of endpoint {expected}")]
    Misdirected {
        /// This endpoint.
        expected: u16,
    },
    /// It is from or for an earlier session, or from an arbiter that the endpoint does not use now.
    #[error("the datagram is of an earlier session, or of an arbiter that is not in use")]
    Stale,
    /// It has arrived before, or so late that this is unknown.
    #[error("the datagram is a duplicate, or is more than 32 datagrams late")]
    Duplicate,
    /// The arbiter has no room for its requests.
    #[error("the arbiter has no room for the requests of the datagram")]
    NoRoom,
}
