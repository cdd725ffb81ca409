//! What holds for all parsers: they accept any text, and a parser that begins at `needs_from` continues as one that never stopped.

use proptest::prelude::*;

use super::golden::{Case, cases, log, parser_of};
use super::*;

/// Parses lines that begin at these offsets.
fn parse(parser: &mut dyn LogParser, lines: &[(u64, &str)]) -> Vec<LoggedTransfer> {
    let mut found = Vec::new();
    for (offset, line) in lines {
        if *offset > 0 || !parser.header(line) {
            let _ = parser.line(line, *offset, &mut found);
        }
    }
    found
}

fn lines_of(text: &str) -> Vec<(u64, &str)> {
    let mut offset = 0;
    text.split_terminator('\n')
        .map(|line| {
            let start = offset;
            offset += line.len() as u64 + 1;
            (start, line)
        })
        .collect()
}

#[test]
fn a_parser_that_restarts_at_any_line_finds_the_same_transfers() {
    for case in cases() {
        let text = log(&case);
        let lines = lines_of(&text);
        let all = parse(&mut *parser_of(&case), &lines);
        for cut in 0..=lines.len() {
            let mut first = parser_of(&case);
            let mut found = parse(&mut *first, &lines[..cut]);
            let needs_from = first.needs_from();
            let from = needs_from.map_or(cut, |offset| {
                lines.iter().position(|(start, _)| *start == offset).unwrap_or_else(|| {
                    panic!("{}: no line begins at {offset}", case.name);
                })
            });
            let mut second = parser_of(&case);
            if from > 0 {
                second.header(lines[0].1);
            }
            parse(&mut *second, &lines[from..cut]);
            found.extend(parse(&mut *second, &lines[cut..]));
            assert_eq!(found, all, "{} restarted at line {cut}", case.name);
        }
    }
}

fn any_case() -> impl Strategy<Value = Case> {
    (0..cases().len()).prop_map(|index| cases().swap_remove(index))
}

impl std::fmt::Debug for Case {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

proptest! {
    #[test]
    fn any_text_is_accepted(case in any_case(), lines in proptest::collection::vec(".{0,80}", 0..20)) {
        let mut parser = parser_of(&case);
        for (number, line) in lines.iter().enumerate() {
            let _ = parser.line(line, number as u64, &mut Vec::new());
        }
    }

    #[test]
    fn a_changed_log_is_accepted(
        case in any_case(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), ".{0,4}"), 1..20),
    ) {
        let mut characters: Vec<char> = log(&case).chars().take(20_000).collect();
        for (place, text) in &changes {
            let at = place.index(characters.len());
            let end = (at + 2).min(characters.len());
            characters.splice(at..end, text.chars());
        }
        let text: String = characters.into_iter().collect();
        parse(&mut *parser_of(&case), &lines_of(&text));
    }

    #[test]
    fn a_transfer_never_ends_before_it_starts(
        case in any_case(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), "[0-9]"), 1..20),
    ) {
        let mut characters: Vec<char> = log(&case).chars().take(20_000).collect();
        for (place, digit) in &changes {
            let at = place.index(characters.len());
            if characters[at].is_ascii_digit() {
                characters.splice(at..=at, digit.chars());
            }
        }
        let text: String = characters.into_iter().collect();
        for transfer in parse(&mut *parser_of(&case), &lines_of(&text)) {
            prop_assert!(transfer.start_us <= transfer.end_us, "{:?}", transfer);
        }
    }
}
