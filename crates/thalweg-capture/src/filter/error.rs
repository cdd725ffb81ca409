//! Errors of capture filters.

use thalweg_wire::LinkType;
use thiserror::Error;

/// Why a capture filter cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterError {
    /// libpcap could not be loaded.
    #[error("cannot load libpcap, which capture filters need ({reason}): install it (Debian: libpcap0.8)")]
    NoLibpcap {
        /// The loader's message.
        reason: String,
    },
    /// libpcap rejects the expression.
    #[error(
        "invalid capture filter `{expression}` for {link_type} frames: {reason} (expected: tcpdump's syntax, such as \"tcp port 443\"; see pcap-filter(7))"
    )]
    Expression {
        /// The expression.
        expression: String,
        /// The link type of the frames.
        link_type: LinkType,
        /// libpcap's message.
        reason: String,
    },
}
