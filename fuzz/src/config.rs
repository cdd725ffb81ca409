//! Configuration files.

use thalweg::config::{Config, ConfigError, Request, resolve};

/// The name of the file in messages.
const NAME: &str = "thalweg.toml";

/// Checks that any text is a configuration or an error with one line for each problem that has the line of the file.
///
/// # Panics
/// When the property does not hold.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Config::parse(text, NAME) {
        Ok(config) => check_config(&config),
        Err(ConfigError::Invalid(wrong)) => {
            assert_eq!(wrong.file, NAME);
            assert!(!wrong.problems.is_empty());
            let message = wrong.to_string();
            let (lines, last_line) = (message.split('\n'), text.split('\n').count());
            let rest = usize::from(wrong.omitted > 0);
            assert_eq!(lines.clone().count(), wrong.problems.len() + rest, "{message}");
            for (line, problem) in lines.zip(&wrong.problems) {
                let number = problem.line().unwrap_or(0);
                assert!((1..=last_line).contains(&number), "{message}");
                assert!(line.starts_with(&format!("{NAME}:{number}: ")), "{message}");
                assert!(!line.contains(char::is_control), "{message:?}");
            }
        }
        Err(error) => panic!("unexpected error without a file: {error}"),
    }
}

/// Checks that an error for inconsistent values names the file.
fn check_config(config: &Config) {
    let request = Request { sources: vec!["eth0".to_owned()], ..Request::default() };
    if let Err(error) = resolve(&request, config, false) {
        assert!(error.to_string().contains(NAME), "{error}");
    }
}
