//! Binary `sluice-openapi`: prints the OpenAPI document of this build.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    io::stdout().write_all(sluice_api::openapi::document().as_bytes())
}
