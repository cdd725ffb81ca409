//! The places of an interface where a program can run.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// XDP in the driver.
    Xdp,
    /// XDP in the network stack, for drivers without XDP.
    GenericXdp,
    /// The ingress of tc.
    Tc,
}

/// Formats as in messages.
impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Hook::Xdp => "XDP",
            Hook::GenericXdp => "XDP in generic mode",
            Hook::Tc => "tc ingress",
        })
    }
}

/// The requested hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookChoice {
    /// XDP in the driver, or tc.
    #[default]
    Auto,
    /// XDP, in the driver or in generic mode.
    Xdp,
    /// The ingress of tc.
    Tc,
}

/// Invalid text for a hook.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("invalid hook `{0}`: expected auto, xdp or tc")]
pub struct ParseHookError(String);

impl FromStr for HookChoice {
    type Err = ParseHookError;

    fn from_str(text: &str) -> Result<HookChoice, ParseHookError> {
        match text {
            "auto" => Ok(HookChoice::Auto),
            "xdp" => Ok(HookChoice::Xdp),
            "tc" => Ok(HookChoice::Tc),
            _ => Err(ParseHookError(text.to_owned())),
        }
    }
}

/// Formats as it is parsed.
impl fmt::Display for HookChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            HookChoice::Auto => "auto",
            HookChoice::Xdp => "xdp",
            HookChoice::Tc => "tc",
        })
    }
}
