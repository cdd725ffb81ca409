//! How much a decoder keeps.

use crate::time::Nanos;

/// What a decoder may keep, and what it takes for granted where exporters say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Transport sessions (one exporter's address and port); the least recently used goes, one that gave no rows before one
    /// that did, and a connection last. Default 1,024: a national network has a few hundred routers.
    pub sessions: usize,
    /// Observation domains of a session; those beyond are refused. Default 256: line cards are domains of their own.
    pub domains: usize,
    /// Templates of a session, all domains together; the least recently used goes. Default 2,048.
    pub templates: usize,
    /// Fields of a template; longer ones are refused. Default 512: IANA has given away about that many elements.
    pub template_fields: usize,
    /// Bytes of data held for templates that have not come yet, of one session. Default 256 KiB.
    pub held_bytes: usize,
    /// The same of all sessions. Default 16 MiB.
    pub held_bytes_in_all: usize,
    /// How long such data are held. Default 10 minutes, as often as most exporters repeat their templates; for the rest
    /// the bounds on bytes decide anyway.
    pub held_for: Nanos,
    /// How long a template that came over UDP is good for; RFC 7011 section 8.4 asks for at least three times the
    /// interval at which it is repeated. Default 90 minutes: three times the 30 that routers are shipped with.
    pub template_lifetime: Nanos,
    /// A session that has been silent for so long is forgotten. Default 6 hours.
    pub session_lifetime: Nanos,
    /// One packet in so many is counted, where neither the exporter nor
    /// [`Decoder::set_sampling`](super::Decoder::set_sampling) says so. Default 0: not told.
    pub default_sampling: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            sessions: 1024,
            domains: 256,
            templates: 2048,
            template_fields: 512,
            held_bytes: 256 << 10,
            held_bytes_in_all: 16 << 20,
            held_for: Nanos::from_secs(600),
            template_lifetime: Nanos::from_secs(90 * 60),
            session_lifetime: Nanos::from_secs(6 * 3600),
            default_sampling: 0,
        }
    }
}
