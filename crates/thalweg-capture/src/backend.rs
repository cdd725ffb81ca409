//! Capture backends for network interfaces.
//!
//! [AF_PACKET](crate::live) taps an interface without side effects: in blocks of frames, or with each frame [as soon
//! as it arrives](crate::live::prompt). [AF_XDP](crate::xdp) is faster, but hides incoming packets from the host.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A capture backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    /// A tap that collects frames in blocks: the host's network stack is not affected.
    AfPacket,
    /// Bypasses the network stack, which no longer receives incoming packets.
    AfXdp,
    /// A tap that delivers each frame as soon as it arrives.
    Prompt,
}

/// Formats as `AF_PACKET`, `AF_XDP` or `prompt AF_PACKET`, for messages.
impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Backend::AfPacket => "AF_PACKET",
            Backend::AfXdp => "AF_XDP",
            Backend::Prompt => "prompt AF_PACKET",
        })
    }
}

/// Invalid name of a backend.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected `af_packet`, `af_xdp` or `prompt`")]
pub struct ParseBackendError;

impl FromStr for Backend {
    type Err = ParseBackendError;

    /// Parses `af_packet`, `af_xdp` and `prompt`. Configurations have `auto` besides, which is not a backend but a choice of one.
    fn from_str(text: &str) -> Result<Backend, ParseBackendError> {
        match text {
            "af_packet" => Ok(Backend::AfPacket),
            "af_xdp" => Ok(Backend::AfXdp),
            "prompt" => Ok(Backend::Prompt),
            _ => Err(ParseBackendError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backend_names_are_parsed() {
        assert_eq!("af_packet".parse(), Ok(Backend::AfPacket));
        assert_eq!("af_xdp".parse(), Ok(Backend::AfXdp));
        assert_eq!("prompt".parse(), Ok(Backend::Prompt));
        assert_eq!("AF-XDP".parse::<Backend>(), Err(ParseBackendError));
    }
}
