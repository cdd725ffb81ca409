//! The contenders of this process: textbook versions first, which all others are measured against.

use super::contender::{Contender, Family, LEVELS, ROWS, Subject, TOP, WIDTH};
use super::textbook::{CountMin, CountSketch, KAry, NitroCountSketch, UnivMon, WithTop};

/// Name of those that are written as the papers have them.
pub const TEXTBOOK: &str = "textbook";

/// Sampled versions count one row in so many.
const ONE_IN: [i32; 2] = [16, 128];

/// All of them. Ours go here.
pub fn all() -> Vec<Contender> {
    textbook()
}

fn textbook() -> Vec<Contender> {
    use Family::{CountMin as Min, CountSketch as Signed, KAry as Ary, UnivMon as Universal};
    let subject = |family, p| Subject::new(TEXTBOOK, family, p);
    let mut contenders = vec![
        Contender::new(subject(Min, 1.0), || CountMin::new(ROWS, WIDTH)),
        Contender::new(subject(Min, 1.0).with_top(), || WithTop::new(CountMin::new(ROWS, WIDTH), TOP)),
        Contender::new(subject(Signed, 1.0), || CountSketch::new(ROWS, WIDTH)),
        Contender::new(subject(Signed, 1.0).with_top(), || WithTop::new(CountSketch::new(ROWS, WIDTH), TOP)),
        Contender::new(subject(Ary, 1.0), || KAry::new(ROWS, WIDTH)),
        Contender::new(subject(Universal, 1.0).with_levels(), || UnivMon::new(LEVELS, ROWS, WIDTH, TOP)),
    ];
    for one_in in ONE_IN {
        let nitro = move || NitroCountSketch::new(ROWS, WIDTH, one_in, 1);
        let subject = subject(Signed, 1.0 / f64::from(one_in)).noting("a logarithm a draw");
        contenders.push(Contender::new(subject.clone(), nitro));
        contenders.push(Contender::new(subject.with_top(), move || WithTop::new(nitro(), TOP)));
    }
    contenders
}
