//! The ways to the packets of an interface.
//!
//! [AF_PACKET](crate::live) taps an interface and leaves it as it is: in blocks of frames, or with each frame [as soon as it
//! comes](crate::live::prompt). [AF_XDP](crate::xdp) is faster, and takes what comes in away from the host.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A way to the packets of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    /// A tap that gathers frames: the host's network stack goes on as before.
    AfPacket,
    /// Past the network stack, which no longer gets what comes in.
    AfXdp,
    /// A tap that hands each frame over as soon as it comes.
    Prompt,
}

/// `AF_PACKET` or `AF_XDP`, as in the kernel's documentation.
impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Backend::AfPacket => "AF_PACKET",
            Backend::AfXdp => "AF_XDP",
            Backend::Prompt => "prompt AF_PACKET",
        })
    }
}

/// Why the name of a backend could not be read.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected `af_packet`, `af_xdp` or `prompt`")]
pub struct ParseBackendError;

impl FromStr for Backend {
    type Err = ParseBackendError;

    /// Reads `af_packet`, `af_xdp` and `prompt`, as configurations write them.
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
    fn names_in_configurations_are_read() {
        assert_eq!("af_packet".parse(), Ok(Backend::AfPacket));
        assert_eq!("af_xdp".parse(), Ok(Backend::AfXdp));
        assert_eq!("prompt".parse(), Ok(Backend::Prompt));
        assert_eq!("AF-XDP".parse::<Backend>(), Err(ParseBackendError));
    }
}
