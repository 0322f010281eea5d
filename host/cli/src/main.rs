//! The binary: everything is in the library, so that a program with other plugins is as short.

fn main() -> std::process::ExitCode {
    capsule::main()
}
