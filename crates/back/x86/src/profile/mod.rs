//! What tools outside must know of code made at run time: the map that `perf` reads, and the interface of GDB.
//!
//! Both are off unless their environment variable is `1`: `LOOPWRIGHT_PERF_MAP` and `LOOPWRIGHT_GDB`.

mod elf;
mod gdb;
mod perf;

use std::io;

pub use perf::perf_map;

use crate::region::Region;

/// A function in a region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Where it begins in the region.
    pub offset: usize,
    /// Its bytes.
    pub size: usize,
}

/// Which tools are told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Tools {
    perf: bool,
    gdb: bool,
}

impl Tools {
    /// As the environment asks.
    fn from_environment() -> Self {
        let on = |variable| std::env::var_os(variable).is_some_and(|value| value == "1");
        Tools {
            perf: on("LOOPWRIGHT_PERF_MAP"),
            gdb: on("LOOPWRIGHT_GDB"),
        }
    }
}

/// Code that the tools know of. Dropping it takes it back from GDB; drop it before the region.
#[derive(Debug)]
#[must_use = "dropping it takes the code back"]
pub struct Announced {
    _gdb: Option<gdb::Registration>,
    perf: io::Result<()>,
}

impl Announced {
    /// Why the map for `perf` could not be written, if it was asked for and could not.
    pub fn perf_error(&self) -> Option<&io::Error> {
        self.perf.as_ref().err()
    }
}

/// Tells the tools that the environment asks for about the functions of a region. Costs nothing where none is asked.
pub fn announce(region: &Region, symbols: &[Symbol]) -> Announced {
    announce_to(Tools::from_environment(), region, symbols)
}

fn announce_to(tools: Tools, region: &Region, symbols: &[Symbol]) -> Announced {
    let address = region.address() as u64;
    let perf = if tools.perf {
        perf_map(symbols.iter().map(|symbol| {
            (
                address + symbol.offset as u64,
                symbol.size,
                symbol.name.as_str(),
            )
        }))
    } else {
        Ok(())
    };
    let gdb = tools
        .gdb
        .then(|| gdb::Registration::new(elf::object(address, region.len(), symbols)));
    Announced { _gdb: gdb, perf }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::asm::{Assembler, RAX};

    fn symbol(name: &str, offset: usize, size: usize) -> Symbol {
        Symbol {
            name: name.to_owned(),
            offset,
            size,
        }
    }

    #[test]
    fn nothing_is_announced_unasked() {
        let region = Region::new(&[0xc3]).expect("memory for code");
        let announced = announce_to(
            Tools {
                perf: false,
                gdb: false,
            },
            &region,
            &[symbol("f", 0, 1)],
        );
        assert!(announced._gdb.is_none() && announced.perf_error().is_none());
    }

    #[test]
    fn the_perf_map_has_the_functions() {
        let region = Region::new(&[0xc3; 32]).expect("memory for code");
        let symbols = [symbol("add one\n", 0, 16), symbol("multiply", 16, 16)];
        let announced = announce_to(
            Tools {
                perf: true,
                gdb: false,
            },
            &region,
            &symbols,
        );
        assert!(
            announced.perf_error().is_none(),
            "{:?}",
            announced.perf_error()
        );
        let path = perf::path();
        let text = std::fs::read_to_string(&path).expect("the map that was written");
        let at = region.address() as usize;
        let expected = format!("{at:x} 10 add one_\n{:x} 10 multiply\n", at + 16);
        assert!(
            text.contains(&expected),
            "expected {expected:?} in {text:?}"
        );
        std::fs::remove_file(path).expect("the map can be removed");
    }

    /// What `gdb_names_the_function` runs under GDB: code with a breakpoint instruction in it.
    #[test]
    #[ignore = "run by gdb_names_the_function"]
    fn stops_in_generated_code() {
        let mut asm = Assembler::new();
        asm.ret();
        asm.align(16);
        asm.mov_imm(RAX, 1);
        let mut bytes = asm.finish(&[]).bytes;
        bytes.extend([0xcc, 0xc3]);
        let region = Region::new(&bytes).expect("memory for code");
        let symbols = [
            symbol("not_this_one", 0, 16),
            symbol("softmax_rows", 16, bytes.len() - 16),
        ];
        let announced = announce_to(
            Tools {
                perf: false,
                gdb: true,
            },
            &region,
            &symbols,
        );
        // SAFETY: the code at 16 is a function without arguments.
        let function: extern "C" fn() -> i64 =
            unsafe { std::mem::transmute(region.address().add(16)) };
        function();
        drop(announced);
    }

    #[test]
    fn gdb_names_the_function() {
        if Command::new("gdb").arg("--version").output().is_err() {
            println!("skipped: gdb is not installed");
            return;
        }
        let this = std::env::current_exe().expect("the path of this test");
        let test = format!(
            "{}::stops_in_generated_code",
            module_path!().split_once("::").expect("a crate's module").1
        );
        let output = Command::new("gdb")
            .args([
                "--nx",
                "--batch",
                "-ex",
                "set debuginfod enabled off",
                "-ex",
                "set startup-with-shell off",
            ])
            .args([
                "-ex",
                "run",
                "-ex",
                "info symbol $pc",
                "-ex",
                "kill",
                "--args",
            ])
            .arg(this)
            .args([
                "--exact",
                &test,
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .output()
            .expect("gdb runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        if !text.contains("SIGTRAP") {
            println!("skipped: gdb cannot run a program here: {text}");
            return;
        }
        assert!(
            text.contains("softmax_rows + 6 in section .text"),
            "gdb says: {text}"
        );
    }
}
