//! Creates a lab, shows its status, runs a command on a host, removes the lab: `lab up [leaf-spine|fat-tree-4]`, `lab
//! status`, `lab exec HOST COMMAND...`, `lab down`. Needs root.

use std::process::{Command, ExitCode};

use thalweg_lab::{DEFAULT_RATE, Lab, Plan, Prefix};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lab: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    let prefix = Prefix::default();
    match arguments {
        ["up"] | ["up", "leaf-spine"] => print_hosts(&Lab::up(Plan::leaf_spine(DEFAULT_RATE)?)?)?,
        ["up", "fat-tree-4"] => print_hosts(&Lab::up(Plan::fat_tree_4(DEFAULT_RATE)?)?)?,
        ["status"] => println!("{:#?}", Lab::find(&prefix)?.status()?),
        ["exec", host, program, rest @ ..] => {
            let status = Lab::find(&prefix)?.exec(host, Command::new(program).args(rest))?.wait()?;
            println!("{status}");
        }
        ["down"] => println!("{:?}", Lab::down(&prefix)?),
        _ => {
            return Err("usage: lab up [leaf-spine|fat-tree-4] | status | exec HOST COMMAND... | down".into());
        }
    }
    Ok(())
}

fn print_hosts(lab: &Lab) -> Result<(), Box<dyn std::error::Error>> {
    for host in lab.status()?.hosts {
        println!("{:8} {:12} {} {}", host.name, host.namespace, host.ip, host.mac);
    }
    Ok(())
}
