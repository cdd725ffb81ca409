//! Reads a line of a log from left to right.

use super::LineError;

/// The part of a line that is not read yet.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    /// Starts at the beginning of a text.
    pub(crate) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { rest: text }
    }

    /// Returns the text that is not read yet.
    pub(crate) fn rest(&self) -> &'a str {
        self.rest
    }

    /// Skips a literal and returns whether it was there.
    pub(crate) fn skip(&mut self, literal: &str) -> bool {
        match self.rest.strip_prefix(literal) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Reads a literal.
    ///
    /// # Errors
    /// If the text continues differently.
    pub(crate) fn literal(&mut self, literal: &str, expected: &'static str) -> Result<(), LineError> {
        match self.skip(literal) {
            true => Ok(()),
            false => Err(LineError::new(expected, self.rest)),
        }
    }

    /// Reads the text before the next `end`, and `end`.
    ///
    /// # Errors
    /// If the text has no `end`.
    pub(crate) fn until(&mut self, end: &str, expected: &'static str) -> Result<&'a str, LineError> {
        let (text, rest) = self.rest.split_once(end).ok_or_else(|| LineError::new(expected, self.rest))?;
        self.rest = rest;
        Ok(text)
    }

    /// Reads all decimal digits that come next, at least `least` and at most `most`, which must be at most 9.
    ///
    /// # Errors
    /// If there are fewer or more.
    pub(crate) fn digits(
        &mut self,
        least: usize,
        most: usize,
        expected: &'static str,
    ) -> Result<u32, LineError> {
        let digits = self.number();
        match (least..=most.min(9)).contains(&digits.len()) {
            true => digits.parse().map_err(|_| LineError::new(expected, digits)),
            false => Err(LineError::new(expected, if digits.is_empty() { self.rest } else { digits })),
        }
    }

    /// Reads all decimal digits that come next; possibly none.
    pub(crate) fn number(&mut self) -> &'a str {
        let end = self.rest.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_from_left_to_right() {
        let mut scanner = Scanner::new("pid 17: done");
        assert!(scanner.skip("pid "));
        assert!(!scanner.skip("pid "));
        assert_eq!(scanner.digits(1, 9, "a number"), Ok(17));
        assert_eq!(scanner.literal(": ", "a colon"), Ok(()));
        assert_eq!(scanner.until("ne", "an end"), Ok("do"));
        assert_eq!(scanner.rest(), "");
        assert_eq!(scanner.until("x", "an x"), Err(LineError::new("an x", "")));
    }

    #[test]
    fn a_number_of_the_wrong_length_is_refused() {
        assert!(Scanner::new("123").digits(4, 4, "a year").is_err());
        assert!(Scanner::new("12345").digits(4, 4, "a year").is_err());
        assert!(Scanner::new("99999999999").digits(1, 20, "a number").is_err());
        assert!(Scanner::new("x").digits(1, 2, "a day").is_err());
    }
}
