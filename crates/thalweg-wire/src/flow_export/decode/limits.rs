//! Limits of a decoder.

use crate::time::Nanos;

/// Memory limits and timeouts of a decoder, and the default sampling interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of transport sessions (address and port of an exporter). The least recently used is evicted:
    /// sessions that gave no rows first, connections last. Default 1,024: a national network has a few hundred routers.
    pub sessions: usize,
    /// The maximum number of observation domains per session; further ones are rejected. Default 256: each line card
    /// may be a domain.
    pub domains: usize,
    /// The maximum number of templates per session, in all domains; the least recently used is evicted. Default 2,048.
    pub templates: usize,
    /// The maximum number of fields per template; longer ones are rejected. Default 512: IANA has assigned about as
    /// many elements.
    pub template_fields: usize,
    /// The maximum number of names of interfaces and VRFs, in all sessions; further ones are refused, and counted. Default
    /// 262,144: a thousand routers with 256 interfaces each, about 12 MiB.
    pub names: usize,
    /// The maximum bytes of data held for missing templates, per session. Default 256 KiB.
    pub held_bytes: usize,
    /// The maximum bytes of data held for missing templates, in all sessions. Default 16 MiB.
    pub total_held_bytes: usize,
    /// The maximum time for which data are held. Default 10 minutes, in which most exporters refresh their templates.
    pub held_for: Nanos,
    /// The lifetime of a template received over UDP; RFC 7011 section 8.4 requires at least three times the refresh
    /// interval. Default 90 minutes: three times the usual default of 30 minutes on routers.
    pub template_lifetime: Nanos,
    /// The idle time after which a session is dropped. Default 6 hours.
    pub session_lifetime: Nanos,
    /// The sampling interval if neither the exporter nor [`Decoder::set_sampling`](super::Decoder::set_sampling) gives
    /// one. Default 0: unknown.
    pub default_sampling: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            sessions: 1024,
            domains: 256,
            templates: 2048,
            template_fields: 512,
            names: 1 << 18,
            held_bytes: 256 << 10,
            total_held_bytes: 16 << 20,
            held_for: Nanos::from_secs(600),
            template_lifetime: Nanos::from_secs(90 * 60),
            session_lifetime: Nanos::from_secs(6 * 3600),
            default_sampling: 0,
        }
    }
}
