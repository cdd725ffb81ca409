//! Line wrapping.

/// Wraps text at `width` characters; longer words get a line of their own. The first line begins with `first`, the
/// others with `rest`. Ends in a newline.
pub fn wrapped(text: &str, first: &str, rest: &str, width: usize) -> String {
    let mut out = first.to_owned();
    let mut length = first.chars().count();
    let mut begins = true;
    for word in text.split_whitespace() {
        let word_length = word.chars().count();
        if !begins && length + 1 + word_length > width {
            out.push('\n');
            out.push_str(rest);
            length = rest.chars().count();
        } else if !begins {
            out.push(' ');
            length += 1;
        }
        out.push_str(word);
        length += word_length;
        begins = false;
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_are_filled_up_to_the_width() {
        assert_eq!(wrapped("one two three four", "- ", "  ", 9), "- one two\n  three\n  four\n");
        assert_eq!(wrapped("a-very-long-word b", "", "", 4), "a-very-long-word\nb\n");
        assert_eq!(wrapped("", "# ", "# ", 9), "#\n");
    }
}
