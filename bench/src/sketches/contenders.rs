//! The contenders of this process: textbook versions first, which all others are measured against.

use thalweg_sketch::Probability;

use super::contender::{Contender, Family, LEVEL_TOP, LEVELS, PRECISION, ROWS, Subject, TOP, WIDTH};
use super::ours;
use super::textbook::{CountMin, CountSketch, HyperLogLog, KAry, NitroCountSketch, UnivMon, WithTop};

/// Name of those that are written as the papers have them.
pub const TEXTBOOK: &str = "textbook";

/// Sampled versions count one row in so many.
const ONE_IN: [i32; 2] = [16, 128];

/// All of them.
pub fn all() -> Vec<Contender> {
    let ours = [0, 4, 7].into_iter().filter_map(Probability::new).flat_map(ours::all);
    textbook().into_iter().chain(ours).chain([ours::hyper_log_log()]).collect()
}

/// Written as the papers have them.
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
        let subject = subject(Signed, 1.0 / f64::from(one_in)).noting("a logarithm a draw");
        contenders.push(Contender::new(subject.clone(), nitro));
        contenders.push(Contender::new(subject.with_top(), move || WithTop::new(nitro(), TOP)));
    }
    contenders
}
