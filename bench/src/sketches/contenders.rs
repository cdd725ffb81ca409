//! The contenders in this process: first the textbook versions, which are the reference.

use thalweg_sketch::Probability;

use super::contender::{Contender, Family, LEVEL_TOP, LEVELS, PRECISION, ROWS, Subject, TOP, WIDTH};
use super::ours;
use super::textbook::{CountMin, CountSketch, HyperLogLog, KAry, NitroCountSketch, UnivMon, WithTop};

/// Name of the versions that follow the papers.
pub const TEXTBOOK: &str = "textbook";

/// Values of 1/p of sampled versions.
const ONE_IN: [i32; 2] = [16, 128];

/// Returns all contenders.
pub fn all() -> Vec<Contender> {
    let ours = [0, 4, 7].into_iter().filter_map(Probability::new).flat_map(ours::all);
    textbook().into_iter().chain(ours).chain([ours::hyper_log_log()]).collect()
}

/// Returns the textbook versions.
pub fn textbook() -> Vec<Contender> {
    use Family::{CountMin as Min, CountSketch as Signed, KAry as Ary, UnivMon as Universal};
    let subject = |family, p| Subject::new(TEXTBOOK, family, p);
    let mut contenders = vec![
        Contender::new(subject(Min, 1.0), || CountMin::new(ROWS, WIDTH)),
        Contender::new(subject(Min, 1.0).with_top(), || WithTop::new(CountMin::new(ROWS, WIDTH), TOP)),
        Contender::new(subject(Signed, 1.0), || CountSketch::new(ROWS, WIDTH)),
        Contender::new(subject(Signed, 1.0).with_top(), || WithTop::new(CountSketch::new(ROWS, WIDTH), TOP)),
        Contender::new(subject(Ary, 1.0), || KAry::new(ROWS, WIDTH)),
        Contender::new(subject(Universal, 1.0).with_levels(), || {
            UnivMon::new(LEVELS, ROWS, WIDTH, LEVEL_TOP)
        }),
        Contender::new(subject(Family::HyperLogLog, 1.0).of_registers(), || {
            HyperLogLog::new(PRECISION.into())
        }),
    ];
    for one_in in ONE_IN {
        let nitro = move || NitroCountSketch::new(ROWS, WIDTH, one_in, 1);
        let subject = subject(Signed, 1.0 / f64::from(one_in)).noting("one logarithm per draw");
        contenders.push(Contender::new(subject.clone(), nitro));
        contenders.push(Contender::new(subject.with_top(), move || WithTop::new(nitro(), TOP)));
    }
    contenders
}
