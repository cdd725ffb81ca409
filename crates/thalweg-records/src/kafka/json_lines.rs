//! Converts rows to JSON: one object per row, separated by line feeds.
//!
//! Keys are the column names, in the order of the [schema](crate::schema). A row has all of them, except those of sparse
//! columns that it has no value for: few exporters send these, and each key has its length in every message. Values are those of the files:
//! integers as numbers (64-bit values above the range of `int64` become its maximum), addresses and formats as strings,
//! times as RFC 3339 in UTC with nanoseconds. Times outside 1970 to 2554, which only faulty exporters send, are clamped.
//!
//! A row of `flows` has about 670 bytes. The example `kafka_speed` measures the cost.

use std::ops::Range;

use thalweg_wire::Timestamp;

use crate::schema::{Dataset, Values, ValuesMut};
use crate::store::parquet::text;

/// Microseconds per second.
const SECOND: u64 = 1_000_000;
const DAY: u64 = 86_400 * SECOND;

/// The latest time that [`Timestamp`] represents, in microseconds.
const LAST: i64 = (u64::MAX / 1000) as i64;

/// Size of a key with punctuation, and of the longest value: a quoted address.
const KEY: usize = 32;
const VALUE: usize = text::MAX_LENGTH + 2;

/// Digits of the largest integer.
const DIGITS: usize = 20;

/// The two digits of each number below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Converts rows of one dataset.
#[derive(Debug)]
pub struct JsonLines {
    /// `,"name":` of each column; the first starts with `{`.
    keys: Vec<Padded<KEY>>,
    /// Whether each column is sparse.
    sparse: Vec<bool>,
    line: Line,
    date: Date,
}

/// A batch being converted.
pub struct Lines<'a> {
    /// Each with whether it is left out where it has no value.
    columns: Vec<(&'a Padded<KEY>, Values<'a>, bool)>,
    line: &'a mut Line,
    date: &'a mut Date,
}

/// A string in a buffer of fixed size, which is copied without a function call.
#[derive(Clone, Copy, Debug)]
struct Padded<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

/// The row being written. The buffer has room for the longest row and the padding of its last value.
#[derive(Debug)]
struct Line {
    bytes: Vec<u8>,
    end: usize,
    /// Length of the longest row without texts.
    room: usize,
}

/// The date written last; most times are of the same day.
#[derive(Debug)]
struct Date {
    day: u64,
    /// `"2026-11-22T00:00:00.000000000Z"`, quotes included.
    midnight: [u8; 32],
}

impl JsonLines {
    /// Creates a converter for a dataset.
    ///
    /// # Panics
    /// If a column's name is longer than 28 bytes.
    pub fn new<D: Dataset>() -> JsonLines {
        let key = |(number, column): (usize, &crate::schema::Column)| {
            Padded::new(&format!("{}\"{}\":", if number == 0 { '{' } else { ',' }, column.name))
        };
        let keys: Vec<_> = D::columns().iter().enumerate().map(key).collect();
        let room = keys.len() * (KEY + VALUE) + VALUE;
        let line = Line { bytes: vec![0; room], end: 0, room };
        let mut none = D::default();
        let is_sparse = |number| matches!(none.values_mut(number), ValuesMut::Sparse(_));
        JsonLines { sparse: (0..keys.len()).map(is_sparse).collect(), keys, line, date: Date::of(0) }
    }

    /// Starts converting a batch.
    pub fn lines<'a, D: Dataset>(&'a mut self, batch: &'a D) -> Lines<'a> {
        let columns = self.keys.iter().zip(&self.sparse).enumerate();
        let columns = columns.map(|(number, (key, &sparse))| (key, batch.values(number), sparse));
        // Of a batch without any value, not even looked at.
        let columns = columns.filter(|(_, values, _)| !matches!(values, Values::Unset(..))).collect();
        Lines { columns, line: &mut self.line, date: &mut self.date }
    }
}

impl Lines<'_> {
    /// Appends rows, without a line feed after the last.
    ///
    /// # Panics
    /// If the batch has no such rows.
    pub fn append(&mut self, rows: Range<usize>, out: &mut Vec<u8>) {
        for row in rows.clone() {
            if row > rows.start {
                out.push(b'\n');
            }
            self.row(row);
            out.extend_from_slice(&self.line.bytes[..self.line.end]);
        }
    }

    fn row(&mut self, row: usize) {
        let line = &mut *self.line;
        line.end = 0;
        for &(key, values, is_sparse) in &self.columns {
            if is_sparse && is_unset(values, row) {
                continue;
            }
            line.put(&key.bytes, key.length);
            match values {
                Values::Timestamp(values) => {
                    let time = self.date.time(values[row]);
                    line.put(&time, time.len());
                }
                Values::Address(values) => {
                    let (text, length) = text::address(values[row]);
                    line.quoted(&text, length);
                }
                Values::Format(values) => {
                    let name = Padded::<KEY>::new(values[row].name());
                    line.quoted(&name.bytes, name.length);
                }
                Values::Text(values) => line.text(&values[row]),
                Values::U8(values) => line.number(values[row].into()),
                Values::U16(values) => line.number(values[row].into()),
                Values::U32(values) => line.number(values[row].into()),
                Values::U64(values) => line.number(values[row].min(i64::MAX as u64)),
                Values::Name(values) => line.text(values[row].text()),
                Values::Mac(values) => line.text(&values[row].to_string()),
                Values::Labels(values) => line.text(&values[row].to_string()),
                Values::Unset(..) => unreachable!("left out with its column"),
            }
        }
        line.put(b"}", 1);
    }
}

/// Whether a row of a sparse column has no value.
fn is_unset(values: Values<'_>, row: usize) -> bool {
    match values {
        Values::Address(values) => !values[row].is_some(),
        Values::U8(values) => values[row] == 0,
        Values::U16(values) => values[row] == 0,
        Values::U32(values) => values[row] == 0,
        Values::U64(values) => values[row] == 0,
        Values::Name(values) => !values[row].is_some(),
        Values::Mac(values) => !values[row].is_some(),
        Values::Labels(values) => !values[row].is_some(),
        Values::Unset(..) => true,
        Values::Timestamp(_) | Values::Format(_) | Values::Text(_) => false,
    }
}

impl<const N: usize> Padded<N> {
    fn new(text: &str) -> Padded<N> {
        let mut bytes = [0; N];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Padded { bytes, length: text.len() }
    }
}

impl Line {
    /// Appends the first `length` bytes; later calls overwrite the padding.
    #[inline]
    fn put<const N: usize>(&mut self, bytes: &[u8; N], length: usize) {
        self.bytes[self.end..self.end + N].copy_from_slice(bytes);
        self.end += length;
    }

    /// Appends any text, quoted and escaped. The buffer grows for long ones.
    fn text(&mut self, text: &str) {
        // Text can always be serialised.
        let quoted = serde_json::to_string(text).unwrap_or_default();
        let end = self.end + quoted.len();
        self.bytes.resize(self.bytes.len().max(end + self.room), 0);
        self.bytes[self.end..end].copy_from_slice(quoted.as_bytes());
        self.end = end;
    }

    /// Appends a quoted string that needs no escapes.
    #[inline]
    fn quoted<const N: usize>(&mut self, bytes: &[u8; N], length: usize) {
        self.put(b"\"", 1);
        self.put(bytes, length);
        self.put(b"\"", 1);
    }

    /// Writes digits from last to first, followed by as much padding.
    #[inline]
    fn number(&mut self, mut value: u64) {
        let (mut digits, mut begin) = ([0; 2 * DIGITS], DIGITS);
        while value >= 100 {
            begin -= 2;
            digits[begin..begin + 2].copy_from_slice(&PAIRS[(value % 100) as usize]);
            value /= 100;
        }
        let [tens, ones] = PAIRS[value as usize];
        (digits[begin - 2], digits[begin - 1]) = (tens, ones);
        begin -= if value >= 10 { 2 } else { 1 };
        let digits = digits[begin..].first_chunk::<DIGITS>().expect("padding has this length");
        self.put(digits, DIGITS - begin);
    }
}

impl Date {
    fn of(day: u64) -> Date {
        let mut midnight = *b"\"2026-11-22T00:00:00.000000000Z\"";
        midnight[1..11].copy_from_slice(&Timestamp(day * DAY * 1000).to_string().as_bytes()[..10]);
        Date { day, midnight }
    }

    /// Formats microseconds since 1970.
    #[inline]
    fn time(&mut self, us: i64) -> [u8; 32] {
        let us = us.clamp(0, LAST) as u64;
        if us / DAY != self.day {
            *self = Date::of(us / DAY);
        }
        let (second, us) = (us % DAY / SECOND, us % SECOND);
        let mut text = self.midnight;
        let pairs = [second / 3600, second / 60 % 60, second % 60, us / 10_000, us / 100 % 100, us % 100];
        for (place, pair) in [12, 15, 18, 21, 23, 25].into_iter().zip(pairs) {
            text[place..place + 2].copy_from_slice(&PAIRS[pair as usize]);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;
    use thalweg_wire::flow_export::{
        Address, CounterBatch, Format, LabelStack, Mac, Name, Record, RecordBatch,
    };

    use super::*;

    fn written<D: Dataset>(batch: &D) -> String {
        let mut out = Vec::new();
        JsonLines::new::<D>().lines(batch).append(0..batch.rows(), &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Builds the expected object independently.
    fn expected<D: Dataset>(batch: &D, row: usize) -> Value {
        let value = |number| match batch.values(number) {
            Values::Timestamp(values) => {
                Timestamp(values[row].clamp(0, LAST) as u64 * 1000).to_string().into()
            }
            Values::Address(values) => values[row].to_string().into(),
            Values::Format(values) => values[row].name().into(),
            Values::Text(values) => values[row].to_string().into(),
            Values::U8(values) => values[row].into(),
            Values::U16(values) => values[row].into(),
            Values::U32(values) => values[row].into(),
            Values::U64(values) => values[row].min(i64::MAX as u64).into(),
            Values::Name(values) => values[row].to_string().into(),
            Values::Mac(values) => values[row].to_string().into(),
            Values::Labels(values) => values[row].to_string().into(),
            Values::Unset(..) => Value::Null,
        };
        let mut none = D::default();
        let mut is_left_out = |number: usize, value: &Value| {
            matches!(none.values_mut(number), ValuesMut::Sparse(_))
                && [0.into(), "".into(), Value::Null].contains(value)
        };
        let columns = D::columns().iter().enumerate();
        let columns = columns.map(|(number, column)| (number, column.name.to_owned(), value(number)));
        let columns = columns.filter(|(number, _, value)| !is_left_out(*number, value));
        Value::Object(columns.map(|(_, name, value)| (name, value)).collect())
    }

    fn assert_round_trip<D: Dataset>(batch: &D) {
        let text = written(batch);
        let lines: Vec<Value> = text.split('\n').map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), batch.rows());
        for (row, line) in lines.iter().enumerate() {
            assert_eq!(line, &expected(batch, row));
        }
    }

    #[test]
    fn keys_are_column_names_in_their_order() {
        let mut batch = RecordBatch::default();
        batch.push(&Record {
            received_us: 1_795_352_700_123_456,
            exporter: Address::v4(0xC000_0201),
            format: Format::Ipfix,
            source_address: Address(0x2001_0db8 << 96 | 1),
            octets: u64::MAX,
            ..Record::default()
        });
        let line = written(&batch);
        let begin = r#"{"received":"2026-11-22T13:05:00.123456000Z","exporter":"192.0.2.1","observation_domain_id":0,"format":"ipfix","sampling_interval":0,"flow_start":"1970-01-01T00:00:00.000000000Z","flow_end":"1970-01-01T00:00:00.000000000Z","src":"2001:db8::1","dst":"","#;
        assert!(line.starts_with(begin), "{line}");
        assert!(line.contains(r#""bytes":9223372036854775807,"#), "{line}");
        let end = r#""biflow_direction":0,"inner_src":"","inner_dst":"","inner_src_port":0,"inner_dst_port":0,"inner_protocol":0,"inner_tcp_flags":0,"inner_tos":0,"inner_src_prefix_length":0,"inner_dst_prefix_length":0}"#;
        assert!(line.ends_with(end), "{line}");
    }

    #[test]
    fn numbers_of_all_lengths_are_correct() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        let mut batch = RecordBatch::default();
        for octets in powers.flat_map(|power| [power - 1, power, power + 1, power.saturating_mul(9)]) {
            batch.push(&Record { octets, source_as: octets as u32, ..Record::default() });
        }
        assert_round_trip(&batch);
    }

    #[test]
    fn interface_counters_are_correct() {
        let mut batch = CounterBatch::default();
        batch.resize(2);
        assert_round_trip(&batch);
    }

    proptest! {
        #[test]
        fn arbitrary_rows_round_trip(
            times in prop::collection::vec(any::<i64>(), 1..20), near in 0..4_000_000_000_000_000_i64,
            wide in any::<u128>(), long in any::<u64>(), short in any::<u16>()
        ) {
            let mut batch = RecordBatch::default();
            for received_us in times {
                batch.push(&Record {
                    received_us,
                    flow_start_us: near,
                    flow_end_us: near.saturating_sub(received_us % 100_000_000_000),
                    source_address: Address(wide),
                    destination_address: Address::v4(wide as u32),
                    octets: long,
                    packets: long >> 20,
                    source_as: long as u32,
                    source_port: short,
                    protocol: short as u8,
                    post_vlan_id: (received_us as u16).saturating_sub(short),
                    source_mac: Mac::from_number(long >> (short % 64)),
                    mpls_labels: LabelStack([[(short % 3) as u8; 3]; 10]),
                    egress_vrf_name: Name::of(["", "red \"1\""][usize::from(short % 2)]).unwrap(),
                    bgp_next_hop: Address(wide),
                    ..Record::default()
                });
            }
            assert_round_trip(&batch);
        }
    }
}
