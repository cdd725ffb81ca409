//! Why a capture filter cannot be used.

use thalweg_wire::LinkType;
use thiserror::Error;

/// Why a capture filter cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterError {
    /// libpcap could not be loaded.
    #[error(
        "capture filters need libpcap, which could not be loaded ({reason}); install it (Debian: libpcap0.8)"
    )]
    NoLibpcap {
        /// The loader's message.
        reason: String,
    },
    /// libpcap refuses the expression.
    #[error("capture filter `{expression}` for {link_type} frames: {reason}")]
    Expression {
        /// What was typed.
        expression: String,
        /// What the frames begin with.
        link_type: LinkType,
        /// libpcap's message.
        reason: String,
    },
}
