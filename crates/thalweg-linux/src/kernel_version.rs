//! The version of the running kernel (uname(2)).

use std::fmt;

use nix::sys::utsname::uname;

/// The version of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelVersion {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

impl KernelVersion {
    /// Returns the version of the running kernel; `None` if its release has another form.
    pub fn running() -> Option<KernelVersion> {
        KernelVersion::parse(uname().ok()?.release().to_str()?)
    }

    /// Parses the release of a kernel, such as `6.1.0-38-amd64`.
    fn parse(release: &str) -> Option<KernelVersion> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        match (numbers.next()?, numbers.next()?) {
            (Ok(major), Ok(minor)) => Some(KernelVersion { major, minor }),
            _ => None,
        }
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_releases_are_parsed_and_ordered() {
        let parse = |release| KernelVersion::parse(release).unwrap();
        assert_eq!(parse("6.1.0-38-amd64"), KernelVersion { major: 6, minor: 1 });
        assert_eq!(parse("6.18+"), KernelVersion { major: 6, minor: 18 });
        assert!(parse("5.19.17") < parse("6.6.0") && parse("6.6.9") < parse("6.18.1"));
        assert_eq!(KernelVersion::parse("Linux"), None);
        assert!(KernelVersion::running().is_some());
    }
}
