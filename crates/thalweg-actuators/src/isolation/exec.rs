//! Isolation by a command of the operator, which changes a router or a controller (the heavy-hitter dissertation, University of
//! Virginia 2018, section 3.5.1: a script receives the flow).
//!
//! The command runs without a shell: `COMMAND ARGUMENTS... redirect|release PROTOCOL SRC SRC_PORT DST DST_PORT`. It receives the
//! same as JSON on standard input. Exit code 0 is success, any other that nothing has changed. A run that exceeds the timeout is killed,
//! with all processes that it started. Then nobody knows whether the flow is redirected. At the start, and when the daemon stops,
//! `COMMAND ARGUMENTS... reset` removes what an earlier run left.
//!
//! Each run is a process group of its own (setpgid(2)). Its standard output is discarded. What it writes to standard error is read as long as
//! it runs, so that the command never waits for that.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command as Process, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thalweg_control::isolate::{Command, Input};
use thalweg_linux::process::kill_group;
use thalweg_linux::socket::wait_for_any;
use thalweg_wire::{Nanos, Timestamp};

use super::calls::{Call, CallError, Caller, Calls, RESET};
use super::{Isolator, IsolatorCounters};

/// Interval at which a run is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Maximum length of a message of the command in an error: the start of what it wrote to standard error. The rest is discarded.
const MAX_MESSAGE: usize = 400;

/// Bytes to read from standard error at once.
const READ_AT_ONCE: usize = 4_096;

/// Reads from standard error between two checks of the timeout.
const MAX_READS: usize = 256;

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
pub struct Exec(Calls<Runner>);

/// Runs the command.
struct Runner {
    options: ExecOptions,
    /// Whether runs for a flow are to be killed.
    is_interrupted: Arc<AtomicBool>,
}

impl Exec {
    /// Creates the isolator. It runs nothing before [`Isolator::start`].
    pub fn new(options: ExecOptions) -> Exec {
        let concurrency = options.concurrency;
        Exec(Calls::new(Runner { options, is_interrupted: Arc::default() }, concurrency))
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

    fn maintain(&mut self, _now: Timestamp) -> Result<Vec<String>, String> {
        self.0.check()
    }

    fn prepare_stop(&mut self) {
        self.0.prepare_stop();
    }

    fn stop(&mut self) -> Result<(), String> {
        self.0.stop()
    }

    fn counters(&self) -> IsolatorCounters {
        self.0.counters()
    }
}

impl Caller for Runner {
    fn call(&self, call: &Call) -> Result<(), CallError> {
        let is_interrupted = || self.is_interrupted.load(Ordering::Relaxed);
        self.options.run(&call.arguments(), &call.json(), &is_interrupted)
    }

    fn reset(&self) -> Result<(), String> {
        // The last call of a stop takes its time.
        let done = self.options.run(&["reset".to_owned()], RESET, &|| false);
        done.map_err(|error| format!("{} reset: {}", self.options.program.display(), error.into_message()))
    }

    fn interrupt(&self) {
        self.is_interrupted.store(true, Ordering::Relaxed);
    }
}

impl ExecOptions {
    /// Runs the command and waits for its end. Kills it and the processes of its group after the timeout, or once it is interrupted.
    ///
    /// # Errors
    /// A message, if it cannot be started, fails, is killed or exceeds the timeout.
    fn run(
        &self,
        arguments: &[String],
        input: &str,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), CallError> {
        let mut process = Process::new(&self.program);
        process.args(&self.arguments).args(arguments).process_group(0);
        process.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let until = Instant::now() + self.timeout;
        let mut child =
            process.spawn().map_err(|error| CallError::Failed(format!("cannot start: {error}")))?;
        let mut message = Message::of(&mut child);
        if let Some(mut stdin) = child.stdin.take() {
            // The pipe holds the input. A command that does not read it is not an error.
            let _ = stdin.write_all(input.as_bytes());
        }
        loop {
            let has_ended = child.try_wait();
            message.read();
            let reason = match has_ended {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => {
                    let error = format!("{status}{}", message.text());
                    // A command that a signal ended says nothing.
                    return Err(match status.code() {
                        Some(_) => CallError::Failed(error),
                        None => CallError::Unknown(error),
                    });
                }
                Ok(None) if is_interrupted() => "killed because the daemon stops".to_owned(),
                Ok(None) if Instant::now() < until => {
                    std::thread::sleep(POLL_INTERVAL);
                    continue;
                }
                Ok(None) => format!("timed out after {:?}", self.timeout),
                Err(error) => format!("cannot wait: {error}"),
            };
            kill(&mut child);
            message.read();
            return Err(CallError::Unknown(reason + &message.text()));
        }
    }
}

/// Kills a command that has not been waited for, and all processes of its group.
fn kill(child: &mut Child) {
    // The group contains the command. An error means that it has ended.
    let _ = kill_group(child.id());
    let _ = child.kill();
    let _ = child.wait();
}

/// The start of what a command writes to standard error.
struct Message {
    stderr: Option<ChildStderr>,
    start: Vec<u8>,
}

impl Message {
    fn of(child: &mut Child) -> Message {
        Message { stderr: child.stderr.take(), start: Vec::new() }
    }

    /// Reads what the command has written until now, and keeps the start. Does not wait.
    fn read(&mut self) {
        let Some(stderr) = &mut self.stderr else { return };
        let mut bytes = [0; READ_AT_ONCE];
        for _ in 0..MAX_READS {
            // A read would wait for a command that writes nothing, beyond the timeout.
            if !wait_for_any([stderr.as_raw_fd()], Nanos::ZERO).unwrap_or(false) {
                break;
            }
            match stderr.read(&mut bytes) {
                Ok(0) => break,
                Ok(length) => {
                    let kept = length.min(MAX_MESSAGE - self.start.len());
                    self.start.extend_from_slice(&bytes[..kept]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    }

    /// Returns it as the end of an error.
    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.start);
        match text.trim() {
            "" => String::new(),
            text => format!(": {text}"),
        }
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
        let lines = "[ \"$2\" = reset ] || { echo connecting >&2; exec sleep 1000; }";
        let (mut exec, _folder) = exec(lines, Duration::from_millis(200));
        exec.start().unwrap();
        exec.execute(Command::Redirect(RedirectionId(1), key()), Timestamp(0));
        let Input::Unknown(_, error) = answer(&mut exec) else { panic!("its result is unknown") };
        assert_eq!(error, "timed out after 200ms: connecting");
        let problem = exec.maintain(Timestamp(0)).unwrap_err();
        assert_eq!(problem, "redirect: timed out after 200ms: connecting");
        // A release that fails stays one, and one that works clears the error.
        let (mut exec, folder) = self::exec("[ \"$2\" = reset ] || [ -e works ] || kill -9 $$", LONG);
        exec.start().unwrap();
        let release = Command::Release { id: RedirectionId(1), key: key(), if_packets: None };
        exec.execute(release.clone(), Timestamp(0));
        let Input::ReleaseFailed(_, error) = answer(&mut exec) else { panic!("it failed") };
        assert!(error.starts_with("signal: 9"), "{error}");
        assert!(exec.maintain(Timestamp(0)).is_err());
        std::fs::write(folder.path().join("works"), "").unwrap();
        exec.execute(release, Timestamp(0));
        assert!(matches!(answer(&mut exec), Input::Released(_)));
        assert_eq!(exec.maintain(Timestamp(0)), Ok(Vec::new()));
    }

    /// Whether the process exists and has not ended.
    fn runs(pid: &str) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
    }

    /// Waits until the process has ended.
    #[track_caller]
    fn ends(pid: &str) {
        for _ in 0..5_000 {
            match runs(pid) {
                true => std::thread::sleep(POLL_INTERVAL),
                false => return,
            }
        }
        panic!("process {pid} still runs");
    }

    /// Waits until the file has a line.
    fn line(path: &std::path::Path) -> String {
        loop {
            match std::fs::read_to_string(path) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                _ => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    #[test]
    fn processes_that_the_command_started_are_killed_with_it() {
        const LINES: &str =
            "[ \"$2\" = reset ] && { sleep 0.3; exec touch done; }; sleep 1000 & echo $! > child; wait";
        // By the timeout.
        let (mut exec, folder) = exec(LINES, Duration::from_millis(600));
        exec.start().unwrap();
        exec.execute(Command::Redirect(RedirectionId(1), key()), Timestamp(0));
        assert!(matches!(answer(&mut exec), Input::Unknown(..)));
        let child = line(&folder.path().join("child"));
        ends(&child);
        // By a stop, which drops what waits and lets the reset finish.
        let (mut exec, folder) = self::exec(LINES, LONG);
        exec.start().unwrap();
        std::fs::remove_file(folder.path().join("done")).unwrap();
        for id in 1..=4 {
            exec.execute(Command::Redirect(RedirectionId(id), key()), Timestamp(0));
        }
        let child = line(&folder.path().join("child"));
        exec.prepare_stop();
        exec.stop().unwrap();
        assert!(folder.path().join("done").exists());
        let answers = exec.answers();
        let killed = |it: &Input| matches!(it, Input::Unknown(_, error) if error.starts_with("killed"));
        let dropped = |it: &Input| matches!(it, Input::Failed(_, error) if error == "the daemon stops");
        assert!(answers.iter().any(killed), "{answers:?}");
        assert!(answers.iter().all(|it| killed(it) || dropped(it)), "{answers:?}");
        ends(&child);
        assert!(exec.counters().calls <= 2 + 2, "the others have not started");
    }

    #[test]
    fn after_the_announcement_of_a_stop_flows_are_released_only() {
        let (mut exec, folder) = exec("echo $2 >> commands", LONG);
        exec.start().unwrap();
        exec.prepare_stop();
        exec.execute(Command::Redirect(RedirectionId(1), key()), Timestamp(0));
        let Input::Failed(_, error) = answer(&mut exec) else { panic!("it is dropped") };
        assert_eq!(error, "the daemon stops");
        exec.execute(Command::Release { id: RedirectionId(1), key: key(), if_packets: None }, Timestamp(0));
        assert!(matches!(answer(&mut exec), Input::Released(_)));
        exec.stop().unwrap();
        let commands = std::fs::read_to_string(folder.path().join("commands")).unwrap();
        assert_eq!(commands, "reset\nrelease\nreset\n");
    }

    #[test]
    fn output_of_any_length_does_not_block_and_its_start_is_kept() {
        let lines = "[ \"$2\" = reset ] && exit
                     echo the start >&2; yes x | head -c 300000 >&2; yes y | head -c 300000
                     [ \"$2\" = release ] || exit 3
                     sleep 1000 & echo $! > child";
        let (mut exec, folder) = exec(lines, LONG);
        exec.start().unwrap();
        exec.execute(Command::Redirect(RedirectionId(1), key()), Timestamp(0));
        let Input::Failed(_, error) = answer(&mut exec) else { panic!("it failed") };
        assert!(error.starts_with("exit status: 3: the start\nx\nx"), "{error}");
        assert!(error.len() < MAX_MESSAGE + 20, "{error}");
        // It ends although a process that it started holds its standard error.
        exec.execute(Command::Release { id: RedirectionId(1), key: key(), if_packets: None }, Timestamp(0));
        assert!(matches!(answer(&mut exec), Input::Released(_)));
        let child = line(&folder.path().join("child"));
        assert!(runs(&child));
        assert!(Process::new("kill").arg(child).status().unwrap().success());
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
