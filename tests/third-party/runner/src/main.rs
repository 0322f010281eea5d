//! Every transport of `capsule`, and `parrot` besides.

use std::process::ExitCode;

use my_transport as _;

fn main() -> ExitCode {
    capsule::main()
}
