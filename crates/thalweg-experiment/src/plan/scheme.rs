//! `[scheme]`.

use thalweg_config::Typed;
use thalweg_emulator::schemes::dctcp::DctcpConfig;
use thalweg_emulator::schemes::drop_tail::DropTailConfig;
use thalweg_emulator::schemes::drr::DrrConfig;
use thalweg_emulator::schemes::fq_codel::FqCodelConfig;
use thalweg_emulator::schemes::hull::HullConfig;
use thalweg_emulator::schemes::p_fabric::PFabricConfig;
use thalweg_emulator::schemes::pie::PieConfig;
use thalweg_emulator::schemes::priority::PriorityConfig;
use thalweg_emulator::schemes::red::RedConfig;
use thalweg_emulator::schemes::scavenger::ScavengerConfig;
use thalweg_emulator::schemes::{Scheme, SchemeError};
use thalweg_wire::{BitRate, Bytes};

use crate::experiment::Problem;
use crate::experiment::own_scheme;
use crate::experiment::schemes::{self, BuiltInScheme};

/// The scheme, with defaults for endpoints on links of `rate`.
///
/// # Errors
/// If settings contradict each other.
pub(super) fn scheme(entry: &Typed<'_, own_scheme::Scheme>, rate: BitRate) -> Result<Scheme, Problem> {
    let red = |room: &schemes::PortBuffer, red: &schemes::Red, ecn| {
        Scheme::Red(RedConfig {
            min_threshold: red.min_threshold,
            max_threshold: red.max_threshold,
            max_probability: red.max_probability,
            weight: red.weight,
            gentle: red.gentle,
            ecn,
            buffer: room.buffer,
        })
    };
    let built_in = match &**entry {
        own_scheme::Scheme::BuiltIn(built_in) => built_in,
        own_scheme::Scheme::Own(Ok(own)) => return Ok(Scheme::Own(own.clone())),
        own_scheme::Scheme::Own(Err((key, expected))) => return Err(entry.refuse(key, expected.clone())),
    };
    let scheme = match built_in {
        BuiltInScheme::DropTail(room) => Scheme::DropTail(DropTailConfig { buffer: room.buffer }),
        BuiltInScheme::Red(room, keys) => red(room, keys, false),
        BuiltInScheme::RedEcn(room, keys) => red(room, keys, true),
        BuiltInScheme::Dctcp(room, dctcp) => {
            Scheme::Dctcp(DctcpConfig { threshold: dctcp.threshold, buffer: room.buffer })
        }
        BuiltInScheme::Priority(room, priority) => {
            Scheme::Priority(PriorityConfig { queues: priority.queues, buffer: room.buffer })
        }
        BuiltInScheme::Scavenger(queues) => Scheme::Scavenger(ScavengerConfig {
            primary_buffer: queues.primary_buffer.0,
            scavenger_buffer: queues.scavenger_buffer.0,
            scavenger_share: queues.scavenger_share,
        }),
        BuiltInScheme::Drr(room, drr) => {
            Scheme::Drr(DrrConfig { queues: drr.queues, quantum: whole(drr.quantum), buffer: room.buffer })
        }
        BuiltInScheme::Hull(room, hull) => Scheme::Hull(HullConfig {
            gamma: hull.gamma,
            threshold: whole(hull.threshold),
            buffer: room.buffer,
        }),
        BuiltInScheme::PFabric(room) => Scheme::PFabric(PFabricConfig { buffer: room.buffer }),
        BuiltInScheme::Pie(room, pie) => {
            let default = PieConfig::for_rate(rate);
            Scheme::Pie(PieConfig {
                target: pie.target.unwrap_or(default.target),
                update: pie.update.unwrap_or(default.update),
                alpha: pie.alpha.unwrap_or(default.alpha),
                beta: pie.beta.unwrap_or(default.beta),
                max_burst: pie.max_burst.unwrap_or(default.max_burst),
                ecn: pie.ecn,
                ecn_threshold: pie.ecn_threshold,
                buffer: room.buffer,
            })
        }
        BuiltInScheme::FqCodel(room, codel) => {
            let default = FqCodelConfig::for_rate(rate);
            Scheme::FqCodel(FqCodelConfig {
                flows: codel.flows,
                quantum: whole(codel.quantum),
                target: codel.target.unwrap_or(default.target),
                interval: codel.interval.unwrap_or(default.interval),
                ecn: codel.ecn,
                buffer: room.buffer,
            })
        }
    };
    match scheme.validate() {
        Ok(()) => Ok(scheme),
        Err(SchemeError::Setting { field, given, expected, .. }) => {
            let default = if entry.is_set(field) { "" } else { " (the default)" };
            Err(entry.refuse(field, format!("invalid value {given}{default}: expected {expected}")))
        }
        Err(error) => Err(entry.refuse("name", error.to_string())),
    }
}

/// An amount in 32 bits; larger ones are unlimited in effect.
fn whole(amount: Bytes) -> u32 {
    u32::try_from(amount.0).unwrap_or(u32::MAX)
}

/// Whether a scheme marks packets.
pub(super) fn marks(scheme: &Scheme) -> bool {
    match scheme {
        Scheme::Red(config) => config.ecn,
        Scheme::Pie(config) => config.ecn,
        Scheme::FqCodel(config) => config.ecn,
        Scheme::Dctcp(_) | Scheme::Hull(_) => true,
        Scheme::Own(own) => own.marks(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use thalweg_emulator::schemes::SCHEMES;
    use thalweg_wire::Nanos;

    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn default_settings_are_those_of_each_scheme() {
        for listed in &SCHEMES {
            let text = format!("duration = \"1s\"\n[scheme]\nname = \"{}\"\n", listed.name);
            let experiment = Experiment::parse(&text, "test").unwrap();
            let built = scheme(&experiment.one::<own_scheme::Scheme>(), BitRate(10_000_000)).unwrap();
            assert_eq!(Some(built), Scheme::default_of(listed.name));
        }
    }

    /// 10 Gbit/s: a 150th of PIE's times, a 100th of CoDel's.
    #[test]
    fn pie_and_codel_follow_the_rate_of_the_links() {
        let built = |name: &str| {
            let text = format!("duration = \"1s\"\n[scheme]\nname = \"{name}\"\n");
            let experiment = Experiment::parse(&text, "test").unwrap();
            scheme(&experiment.one::<own_scheme::Scheme>(), BitRate(10_000_000_000)).unwrap()
        };
        let Scheme::Pie(pie) = built("pie") else { panic!("asked for PIE") };
        assert_eq!((pie.target, pie.update), (Nanos::from_micros(100), Nanos::from_micros(100)));
        assert_eq!((pie.alpha, pie.beta, pie.max_burst), (18.75, 187.5, Nanos::from_millis(1)));
        let Scheme::FqCodel(codel) = built("fq_codel") else { panic!("asked for FQ-CoDel") };
        assert_eq!((codel.target, codel.interval), (Nanos::from_micros(50), Nanos::from_millis(1)));
    }
}
