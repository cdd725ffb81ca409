//! What is asked: a route's parameters, and the body.

use std::fmt::Display;
use std::str::FromStr;

use hyper::body::Bytes;
use thalweg_api::problem::{Code, Problem};

use super::route::{Parameter, Route};

/// Longest value of a parameter.
const MAX_VALUE: usize = 1_024;

/// Most parameters of a query.
const MAX_PARAMETERS: usize = 32;

/// What is asked, read and within its limits.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Parameters of path and query, decoded.
    parameters: Vec<(&'static str, String)>,
    /// The `Content-Type`, without its parameters, in lower case.
    pub content_type: Option<String>,
    /// The `Accept`.
    pub accept: Option<String>,
    /// The `Last-Event-ID`.
    pub last_event_id: Option<String>,
    /// The body.
    pub body: Bytes,
}

impl Request {
    /// Parameters for a route: `segments` are those of the path that its template leaves open.
    ///
    /// # Errors
    /// If a parameter of the query is not known, comes twice or cannot be decoded.
    pub fn new(route: &Route, segments: Vec<String>, query: Option<&str>) -> Result<Request, Problem> {
        let in_path = route.parameters.iter().filter(|parameter| parameter.is_in_path);
        let mut parameters: Vec<_> = in_path.map(|parameter| parameter.name).zip(segments).collect();
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        for (place, pair) in pairs.enumerate() {
            if place == MAX_PARAMETERS {
                return Err(bad("a query has at most 32 parameters"));
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let known = known(route, name)?;
            if parameters.iter().any(|(other, _)| *other == known.name) {
                return Err(bad(format!("{} is there twice", known.name)));
            }
            let value =
                decoded(value, true).ok_or_else(|| bad(format!("{} is not valid UTF-8", known.name)))?;
            if value.len() > MAX_VALUE {
                return Err(bad(format!("{} has more than {MAX_VALUE} bytes", known.name)));
            }
            parameters.push((known.name, value));
        }
        Ok(Request { parameters, ..Request::default() })
    }

    /// A parameter as it was typed, if it is there.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// A parameter, if it is there.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn get<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Problem> {
        self.text(name).map(|text| text.parse().map_err(|error| bad(format!("{name}: {error}")))).transpose()
    }

    /// A number in a range, or what it is if it is not there.
    ///
    /// # Errors
    /// If it is no number, or beyond the range.
    pub fn number(&self, name: &str, default: usize, most: usize) -> Result<usize, Problem> {
        match self.get(name)? {
            None => Ok(default),
            Some(number) if (1..=most).contains(&number) => Ok(number),
            Some(number) => Err(bad(format!("{name} is {number}: expected 1 to {most}"))),
        }
    }
}

fn bad(detail: impl Display) -> Problem {
    Problem::new(Code::BadParameter, detail)
}

/// The parameter of this name.
fn known(route: &Route, name: &str) -> Result<&'static Parameter, Problem> {
    let mut in_query = route.parameters.iter().filter(|parameter| !parameter.is_in_path);
    if let Some(parameter) = in_query.clone().find(|parameter| parameter.name == name) {
        return Ok(parameter);
    }
    let names: Vec<&str> = in_query.by_ref().map(|parameter| parameter.name).collect();
    let shown: String = name.chars().take(64).collect();
    Err(bad(match names.is_empty() {
        true => format!("unknown parameter {shown:?}: there are none here"),
        false => format!("unknown parameter {shown:?}: there are {}", names.join(", ")),
    }))
}

/// Percent-encoded text (RFC 3986, section 2.1); in a query `+` stands for a space. `None` if it is no UTF-8, or a
/// percent sign is not followed by two hexadecimal digits.
pub(super) fn decoded(text: &str, is_query: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'%' => {
                let (digits, after) = after.split_at_checked(2)?;
                let digit = |digit: u8| char::from(digit).to_digit(16);
                bytes.push((digit(digits[0])? << 4 | digit(digits[1])?) as u8);
                rest = after;
            }
            b'+' if is_query => bytes.push(b' '),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::api::route::{self, Method};

    fn request(path: &str, query: &str) -> Result<Request, Problem> {
        let (route, segments) = route::find(Method::Get, path).unwrap();
        Request::new(route, segments, Some(query))
    }

    #[test]
    fn the_key_of_a_flow_is_read_from_a_path_however_it_is_encoded() {
        let key = "tcp 10.0.0.1:443 > 10.0.0.2:51000";
        for path in [
            "/v1/flows/tcp%2010.0.0.1:443%20%3E%2010.0.0.2:51000",
            "/v1/flows/tcp%2010.0.0.1%3a443%20>%2010.0.0.2%3A51000",
        ] {
            assert_eq!(request(path, "").unwrap().text("key"), Some(key), "{path}");
        }
    }

    #[test]
    fn a_parameter_that_is_not_known_is_refused_with_those_that_are() {
        let problem = request("/v1/flows", "tpo=3").unwrap_err();
        assert_eq!(problem.status, 400);
        assert_eq!(problem.detail, "unknown parameter \"tpo\": there are top, collector");
        assert!(request("/v1/flows", "top=3&top=4").unwrap_err().detail.contains("twice"));
        assert!(request("/v1/flows/x", "key=y").is_err(), "a parameter of the path is none of the query");
    }

    #[test]
    fn a_number_beyond_its_range_is_refused() {
        let number = |query: &str| request("/v1/flows", query).unwrap().number("top", 20, 100);
        assert_eq!((number(""), number("top=100")), (Ok(20), Ok(100)));
        for wrong in ["top=0", "top=101", "top=-1", "top=", "top=x", "top=99999999999999999999999"] {
            assert_eq!(number(wrong).unwrap_err().status, 400, "{wrong}");
        }
    }

    #[test]
    fn text_that_cannot_be_decoded_is_refused() {
        assert_eq!(decoded("a+b%20c", true), Some("a b c".into()));
        assert_eq!(decoded("a+b", false), Some("a+b".into()));
        for wrong in ["%", "%2", "%zz", "%ff", "%+1"] {
            assert_eq!(decoded(wrong, true), None, "{wrong}");
        }
    }
}
