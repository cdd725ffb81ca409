//! Paths and names of files.
//!
//! A segment of the spool and the file made from it share a stem, `NAME-20261122T130500-00000042`: the store, the start
//! of the time span, and a sequence number that is unique in the store. The path of the file thus follows from the name
//! of the segment, and its existence shows whether it was written.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thalweg_wire::Timestamp;

/// The common part of the names of a segment and its file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stem {
    text: String,
    /// Index of the time in `text`.
    time_at: usize,
}

/// Length of `20261122T130500`.
const TIME: usize = "20261122T130500".len();

/// Minimum number of digits of the sequence number.
const SEQUENCE: usize = 8;

impl Stem {
    pub(crate) fn new(store: &str, begin_us: i64, sequence: u64) -> Stem {
        // 2026-11-22T13:05:00.000000000Z
        let time = Timestamp((begin_us.max(0) as u64).saturating_mul(1000)).to_string();
        let time: String =
            time[.."2026-11-22T13:05:00".len()].chars().filter(|c| !matches!(c, '-' | ':')).collect();
        Stem { text: format!("{store}-{time}-{sequence:08}"), time_at: store.len() + 1 }
    }

    /// Parses the stem of a store's file; `None` for other files.
    pub(super) fn parse(file: &Path, store: &str) -> Option<Stem> {
        let text = file.file_stem()?.to_str()?;
        let rest = text.strip_prefix(store)?.strip_prefix('-')?;
        let (time, sequence) = rest.split_once('-')?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_time =
            time.len() == TIME && time.as_bytes()[8] == b'T' && digits(&time[..8]) && digits(&time[9..]);
        (is_time && sequence.len() >= SEQUENCE && digits(sequence))
            .then(|| Stem { text: text.to_owned(), time_at: store.len() + 1 })
    }

    /// Returns the sequence number.
    pub(super) fn sequence(&self) -> u64 {
        self.text[self.time_at + TIME + 1..].parse().unwrap_or(u64::MAX)
    }

    /// Returns `date=2026-11-22/hour=13/STEM.parquet`.
    pub(super) fn file(&self) -> PathBuf {
        let time = &self.text[self.time_at..];
        let (year, month, day, hour) = (&time[..4], &time[4..6], &time[6..8], &time[9..11]);
        PathBuf::from(format!("date={year}-{month}-{day}/hour={hour}/{self}.parquet"))
    }
}

impl fmt::Display for Stem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the directory names of an hour's partition, which sort chronologically.
pub(crate) fn partition(time: Timestamp) -> [String; 2] {
    let time = time.to_string();
    [format!("date={}", &time[..10]), format!("hour={}", &time[11..13])]
}

/// Returns the hour directories of a dataset, oldest first, with their partition names.
pub(crate) fn hours(dataset: &Path) -> io::Result<Vec<([String; 2], PathBuf)>> {
    let mut hours = Vec::new();
    for (date, path) in directories(dataset, "date=")? {
        for (hour, path) in directories(&path, "hour=")? {
            hours.push(([date.clone(), hour], path));
        }
    }
    hours.sort();
    Ok(hours)
}

/// Returns the time at which the hour of these directories starts, in microseconds since 1970; `None` if they are of no hour.
pub(crate) fn hour_start_us([date, hour]: &[String; 2]) -> Option<i64> {
    let date = date.strip_prefix("date=")?;
    let hour: i64 = hour.strip_prefix("hour=")?.parse().ok()?;
    let mut numbers = date.splitn(3, '-').map(|number| number.parse::<i64>().ok());
    let (year, month, day) = (numbers.next()??, numbers.next()??, numbers.next()??);
    if !(1970..10_000).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || !(0..24).contains(&hour)
    {
        return None;
    }
    // Days of the proleptic Gregorian calendar, with years that begin in March (Hinnant 2014, `days_from_civil`).
    let year = if month <= 2 { year - 1 } else { year };
    let (era, month) = (year / 400, (month + 9) % 12);
    let year_of_era = year - era * 400;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    Some((days * 24 + hour) * 3_600_000_000)
}

fn directories(path: &Path, prefix: &str) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && name.starts_with(prefix)
            && entry.file_type()?.is_dir()
        {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_file_follows_from_its_segment() {
        // 2026-11-22 13:05:00 UTC.
        let stem = Stem::new("collect", 1_795_352_700_000_000, 42);
        assert_eq!(stem.to_string(), "collect-20261122T130500-00000042");
        let file = stem.file();
        assert_eq!(file.to_str(), Some("date=2026-11-22/hour=13/collect-20261122T130500-00000042.parquet"));
        assert_eq!(Stem::parse(&file, "collect"), Some(stem.clone()));
        let segment = Path::new("spool").join(format!("{stem}.spool"));
        let parsed = Stem::parse(&segment, "collect").unwrap();
        assert_eq!((parsed.file(), parsed.sequence()), (file, 42));
    }

    #[test]
    fn the_start_of_an_hour_follows_from_its_directories() {
        for us in
            [0, 951_782_400_000_000, 1_709_251_199_000_000, 1_795_352_700_000_000, 4_102_444_800_000_000]
        {
            let names = partition(Timestamp(us * 1000));
            assert_eq!(hour_start_us(&names), Some((us - us % 3_600_000_000) as i64), "{names:?}");
        }
        for [date, hour] in
            [["date=x", "hour=1"], ["date=2026-13-01", "hour=1"], ["date=2026-11-22", "hour=24"]]
        {
            assert_eq!(hour_start_us(&[date.to_owned(), hour.to_owned()]), None);
        }
    }

    #[test]
    fn files_of_other_stores_are_ignored() {
        for name in
            ["watch-20261122T130500-00000042.parquet", "collect-x.parquet", "collect.parquet", ".collect"]
        {
            assert_eq!(Stem::parse(Path::new(name), "collect"), None, "{name}");
        }
    }
}
