//! Isolation by a command of the operator, which changes a router or a controller (the heavy-hitter dissertation, University of
//! Virginia 2018, section 3.5.1: a script receives the flow).
//!
//! The command runs without a shell: `COMMAND ARGUMENTS... redirect|release PROTOCOL SRC SRC_PORT DST DST_PORT`. It receives the
//! same as JSON on standard input. Exit code 0 is success. A run that exceeds the timeout is killed. At the start, and
//! when the daemon stops, `COMMAND ARGUMENTS... reset` removes what an earlier run left.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use thalweg_control::isolate::{Command, Input};
use thalweg_wire::Timestamp;

use super::calls::{Call, Caller, Calls, RESET};
use super::{Isolator, IsolatorCounters};

/// Interval at which a run is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Maximum length of a message of the command in an error.
const MAX_MESSAGE: u64 = 400;

/// Options of isolation by a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecOptions {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<String>,
    /// Maximum duration of a run.
    pub timeout: Duration,
    /// Maximum number of simultaneous runs.
    pub concurrency: usize,
}

/// Isolation by a command.
pub struct Exec(Calls<ExecOptions>);

impl Exec {
    /// Creates the isolator. It runs nothing before [`Isolator::start`].
    pub fn new(options: ExecOptions) -> Exec {
        let concurrency = options.concurrency;
        Exec(Calls::new(options, concurrency))
    }
}

impl Isolator for Exec {
    fn name(&self) -> &'static str {
        "exec"
    }

    fn start(&mut self) -> Result<(), String> {
        self.0.start()
    }

    fn execute(&mut self, command: Command, _now: Timestamp) -> Option<Input> {
        self.0.execute(command)
    }

    fn answers(&mut self) -> Vec<Input> {
        self.0.answers()
    }

    fn stop(&mut self) -> Result<(), String> {
        self.0.stop()
    }

    fn counters(&self) -> IsolatorCounters {
        self.0.counters()
    }
}

impl Caller for ExecOptions {
    fn call(&self, call: &Call) -> Result<(), String> {
        self.run(&call.arguments(), &call.json())
    }

    fn reset(&self) -> Result<(), String> {
        let done = self.run(&["reset".to_owned()], RESET);
        done.map_err(|error| format!("{} reset: {error}", self.program.display()))
    }
}

impl ExecOptions {
    /// Runs the command and waits for its end.
    ///
    /// # Errors
    /// A message, if it cannot be started, fails or exceeds the timeout.
    fn run(&self, arguments: &[String], input: &str) -> Result<(), String> {
        let mut process = Process::new(&self.program);
        process.args(&self.arguments).args(arguments);
        process.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = process.spawn().map_err(|error| format!("cannot start: {error}"))?;
        if let Some(mut stdin) = child.stdin.take() {
            // The pipe holds the input. A command that does not read it is not an error.
            let _ = stdin.write_all(input.as_bytes());
        }
        let until = Instant::now() + self.timeout;
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("{status}{}", message_of(&mut child))),
                Ok(None) if Instant::now() < until => std::thread::sleep(POLL_INTERVAL),
                Ok(None) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("timed out after {:?}", self.timeout));
                }
                Err(error) => return Err(format!("cannot wait: {error}")),
            }
        }
    }
}

/// Returns the start of what a command that has ended wrote to standard error.
fn message_of(child: &mut Child) -> String {
    let Some(stderr) = child.stderr.take() else { return String::new() };
    let mut bytes = Vec::new();
    let _ = stderr.take(MAX_MESSAGE).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    match text.trim() {
        "" => String::new(),
        text => format!(": {text}"),
    }
}

#[cfg(test)]
mod tests {
    use thalweg_control::isolate::RedirectionId;
    use thalweg_wire::FlowKey;

    use super::*;

    /// An isolator whose command is a script with these lines, and the folder of the script.
    fn exec(lines: &str, timeout: Duration) -> (Exec, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("command");
        std::fs::write(&script, format!("cd \"$(dirname \"$0\")\"\n{lines}\n")).unwrap();
        let arguments = vec![script.display().to_string(), "r1".to_owned()];
        let options = ExecOptions { program: "/bin/sh".into(), arguments, timeout, concurrency: 2 };
        (Exec::new(options), folder)
    }

    fn answer(exec: &mut Exec) -> Input {
        loop {
            match exec.answers().pop() {
                Some(answer) => return answer,
                None => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    fn key() -> FlowKey {
        "udp [2001:db8::1]:5001 > [2001:db8::2]:443".parse().unwrap()
    }

    #[test]
    fn the_command_receives_the_flow_as_arguments_and_as_json() {
        let (mut exec, folder) = exec("echo \"$@\" >> arguments; cat >> input", LONG);
        exec.start().unwrap();
        assert!(exec.execute(Command::Redirect(RedirectionId(7), key()), Timestamp(0)).is_none());
        assert!(matches!(answer(&mut exec), Input::Redirected(RedirectionId(7))));
        let release = Command::Release { id: RedirectionId(7), key: key(), if_packets: None };
        assert!(exec.execute(release, Timestamp(0)).is_none());
        assert!(matches!(answer(&mut exec), Input::Released(RedirectionId(7))));
        exec.stop().unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let flow = "udp 2001:db8::1 5001 2001:db8::2 443";
        assert_eq!(read("arguments"), format!("r1 reset\nr1 redirect {flow}\nr1 release {flow}\nr1 reset\n"));
        assert!(read("input").contains(
            "{\"action\":\"redirect\",\"redirection\":7,\"protocol\":\"udp\",\"src\":\"2001:db8::1\",\"src_port\":5001,\
             \"dst\":\"2001:db8::2\",\"dst_port\":443}\n"
        ));
        assert_eq!((exec.counters().calls, exec.counters().failed_calls), (4, 0));
    }

    #[test]
    fn a_failure_reports_exit_code_and_message() {
        let (mut exec, _folder) = exec("[ \"$2\" = reset ] || { echo no such router >&2; exit 3; }", LONG);
        exec.start().unwrap();
        exec.execute(Command::Redirect(RedirectionId(1), key()), Timestamp(0));
        let Input::Failed(RedirectionId(1), error) = answer(&mut exec) else { panic!("it failed") };
        assert_eq!(error, "exit status: 3: no such router");
        assert_eq!(exec.counters().failed_calls, 1);
    }

    #[test]
    fn a_command_that_hangs_is_killed() {
        let (mut exec, _folder) = exec("[ \"$2\" = reset ] || exec sleep 1000", Duration::from_millis(200));
        exec.start().unwrap();
        exec.execute(Command::Redirect(RedirectionId(1), key()), Timestamp(0));
        let Input::Failed(_, error) = answer(&mut exec) else { panic!("it failed") };
        assert!(error.starts_with("timed out after"), "{error}");
    }

    #[test]
    fn a_missing_command_is_an_error_at_the_start() {
        let program = "/nonexistent/command".into();
        let mut exec =
            Exec::new(ExecOptions { program, arguments: Vec::new(), timeout: LONG, concurrency: 1 });
        let error = exec.start().unwrap_err();
        assert!(error.contains("reset: cannot start: No such file"), "{error}");
    }
}
