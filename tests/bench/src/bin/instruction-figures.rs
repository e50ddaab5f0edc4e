//! Instructions of requests, shown as a table and written as JSON to the file that the one argument names.

use std::{env, path::Path};

use anyhow::bail;
use sluice_bench::{http, instructions};
use sluice_testkit::figure;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [instructions::API, config] => instructions::serve_api(Path::new(config)),
        [instructions::BARE, address, answer] => {
            instructions::serve_bare(address, Path::new(answer))
        }
        [file] => {
            let figures = http::on_one_thread(instructions::figures())?;
            figure::report(&figures, Path::new(file))
        }
        _ => bail!("usage: instruction-figures <file to write>"),
    }
}
