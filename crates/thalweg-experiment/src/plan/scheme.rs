//! `[scheme]`.

use thalweg_emulator::schemes::dctcp::DctcpConfig;
use thalweg_emulator::schemes::drop_tail::DropTailConfig;
use thalweg_emulator::schemes::drr::DrrConfig;
use thalweg_emulator::schemes::fq_codel::FqCodelConfig;
use thalweg_emulator::schemes::hull::HullConfig;
use thalweg_emulator::schemes::p_fabric::PFabricConfig;
use thalweg_emulator::schemes::pie::PieConfig;
use thalweg_emulator::schemes::priority::PriorityConfig;
use thalweg_emulator::schemes::red::RedConfig;
use thalweg_emulator::schemes::{Scheme, SchemeError};

use super::SURE;
use crate::experiment::{Entry, Problem};

/// The scheme.
///
/// # Errors
/// If settings contradict each other.
pub(super) fn scheme(entry: &Entry) -> Result<Scheme, Problem> {
    let buffer = || entry.whole("buffer").expect(SURE);
    let whole = |name| entry.whole(name).expect(SURE);
    let bytes = |name| u32::try_from(entry.amount(name).expect(SURE).0).unwrap_or(u32::MAX);
    let time = |name| entry.time(name).expect(SURE);
    let number = |name| entry.number(name).expect(SURE);
    let is = |name| entry.boolean(name).expect(SURE);
    let queues = || entry.whole("queues").expect(SURE);
    let scheme = match entry.chosen() {
        "droptail" => Scheme::DropTail(DropTailConfig { buffer: buffer() }),
        name @ ("red" | "red-ecn") => Scheme::Red(RedConfig {
            min_threshold: whole("min_threshold"),
            max_threshold: whole("max_threshold"),
            max_probability: number("max_probability"),
            weight: entry.whole("weight").expect(SURE),
            gentle: is("gentle"),
            ecn: name == "red-ecn",
            buffer: buffer(),
        }),
        "dctcp" => Scheme::Dctcp(DctcpConfig { threshold: whole("threshold"), buffer: buffer() }),
        "priority" => Scheme::Priority(PriorityConfig { queues: queues(), buffer: buffer() }),
        "drr" => Scheme::Drr(DrrConfig { queues: queues(), quantum: bytes("quantum"), buffer: buffer() }),
        "hull" => Scheme::Hull(HullConfig {
            gamma: number("gamma"),
            threshold: bytes("threshold"),
            buffer: buffer(),
        }),
        "pfabric" => Scheme::PFabric(PFabricConfig { buffer: buffer() }),
        "pie" => Scheme::Pie(PieConfig {
            target: time("target"),
            update: time("update"),
            alpha: number("alpha"),
            beta: number("beta"),
            max_burst: time("max_burst"),
            ecn: is("ecn"),
            ecn_threshold: number("ecn_threshold"),
            buffer: buffer(),
        }),
        "fq_codel" => Scheme::FqCodel(FqCodelConfig {
            flows: whole("flows"),
            quantum: bytes("quantum"),
            target: time("target"),
            interval: time("interval"),
            ecn: is("ecn"),
            buffer: buffer(),
        }),
        other => unreachable!("{other} is no scheme of the list (tested below)"),
    };
    match scheme.validate() {
        Ok(()) => Ok(scheme),
        Err(SchemeError::Setting { field, given, expected, .. }) => {
            Err(entry.refuse(field, format!("it is {given}: expected {expected}")))
        }
        Err(error) => Err(entry.refuse("name", error.to_string())),
    }
}

/// Whether a scheme marks packets.
pub(super) fn marks(scheme: &Scheme) -> bool {
    match scheme {
        Scheme::Red(config) => config.ecn,
        Scheme::Pie(config) => config.ecn,
        Scheme::FqCodel(config) => config.ecn,
        Scheme::Dctcp(_) | Scheme::Hull(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use thalweg_emulator::schemes::SCHEMES;

    use super::*;
    use crate::experiment::Experiment;
    use crate::experiment::table::SCHEME;

    #[test]
    fn the_table_has_the_defaults_of_every_scheme() {
        for listed in &SCHEMES {
            let text = format!("duration = \"1s\"\n[scheme]\nname = \"{}\"\n", listed.name);
            let experiment = Experiment::parse(&text, "test").unwrap();
            let built = scheme(experiment.entry(&SCHEME)).unwrap();
            assert_eq!(Some(built), Scheme::default_of(listed.name));
        }
    }
}
